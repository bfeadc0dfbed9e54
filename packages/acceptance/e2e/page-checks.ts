import { join } from 'node:path';
import axe from 'axe-core';
import { expect } from '@jest/globals';
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';

const PATIENCE_MS = 60_000;

/** What a phone of our smallest width has, by night. */
export const onPhone: BrowserContextOptions = {
  viewport: { width: 360, height: 740 },
  isMobile: true,
  hasTouch: true,
  colorScheme: 'dark',
};

/**
 * Collects what a page throws, what its policy refuses and, when asked, what it reports as an error. A request that is
 * answered with a status of an error is none of these: browsers print it whatever the page makes of it.
 */
export function watchComplaints(page: Page, { errors = true } = {}): string[] {
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    const text = message.text();
    const isError = errors && message.type() === 'error' && !text.startsWith('Failed to load resource');
    if (isError || text.includes('Content Security Policy')) complaints.push(text);
  });
  return complaints;
}

/** Findings of axe-core at any level, and how far the page scrolls sideways: none of either. */
export async function expectSoundPage(page: Page): Promise<void> {
  // By the debugger, which the page's policy does not bind.
  await page.evaluate(axe.source);
  const findings = await page.evaluate(async () => {
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- what the source has left there
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
  });
  expect(findings).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(0);
}

/**
 * Keeps what the page shows for the documents, where `PICTURES` names a folder: `PICTURES=docs/pictures npm test -- e2e
 * page`.
 */
export async function keepPicture(page: Page, name: string): Promise<void> {
  const folder = process.env['PICTURES']; // eslint-disable-line node/no-process-env -- of the one who makes the pictures
  if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`) });
}

/** Waits until it is there; fails with what the page shows instead. */
export async function expectShown(wanted: Locator, complaints: readonly string[] = []): Promise<void> {
  await wanted.waitFor().catch(async (error: unknown) => {
    const shown = await wanted.page().locator('body').innerText();
    throw new Error([`${String(wanted)} is not there; the page shows:`, shown, ...complaints].join('\n'), { cause: error });
  });
}

/** Signs an owner in; what another visit of the same browser begins with. */
export async function signInOwner(browser: Browser, url: string, key: string): Promise<BrowserContextOptions> {
  await using visit = await BrowserVisit.begin(browser, url);
  await visit.goTo('/');
  await visit.page.getByLabel('API key').fill(key);
  await visit.page.getByRole('button', { name: 'Sign in' }).click();
  await visit.shows(visit.page.getByRole('heading', { level: 1, name: 'Today' }));
  return await visit.keepCookies();
}

/** One browser of one user, who is signed in where a state with cookies is given. */
export class BrowserVisit implements AsyncDisposable {
  readonly page: Page;
  readonly complaints: string[];
  readonly #context: BrowserContext;
  readonly #url: string;

  private constructor(context: BrowserContext, page: Page, url: string) {
    this.#context = context;
    this.#url = url;
    this.page = page;
    this.complaints = watchComplaints(page);
    page.setDefaultTimeout(PATIENCE_MS);
  }

  /** `url`: of the console. Without moving colors, which axe-core would measure half way. */
  static async begin(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<BrowserVisit> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options });
    return new BrowserVisit(context, await context.newPage(), url);
  }

  /** Another tab of the same browser. */
  async openTab(path: string): Promise<Page> {
    const tab = await this.#context.newPage();
    tab.setDefaultTimeout(PATIENCE_MS);
    await tab.goto(`${this.#url}${path}`);
    return tab;
  }

  async goTo(path: string): Promise<void> {
    await this.page.goto(`${this.#url}${path}`);
  }

  async shows(wanted: Locator): Promise<void> {
    await expectShown(wanted, this.complaints);
  }

  /** The cookies, for another visit. */
  async keepCookies(): Promise<BrowserContextOptions> {
    return { storageState: await this.#context.storageState() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
  }
}
