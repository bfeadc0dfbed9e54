import { join } from 'node:path';
import axe from 'axe-core';
import { afterEach, expect } from '@jest/globals';
import type { TenantKeys } from '@concierge/testing';
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';

const PATIENCE_MS = 60_000;

/** What a phone of our smallest width has, by night. */
export const onPhone: BrowserContextOptions = {
  viewport: { width: 360, height: 740 },
  isMobile: true,
  hasTouch: true,
  colorScheme: 'dark',
};

/** What the browsers of the test that runs have complained about so far. */
const heard: Complaints[] = [];

/**
 * What the pages of one browser throw, what their policy refuses and what they report as errors. A request that is
 * answered with a status of an error is none of these: browsers print it whatever the page makes of it.
 */
export class Complaints {
  #texts: string[] = [];

  constructor(context: BrowserContext) {
    context.on('weberror', (raised) => this.#texts.push(raised.error().message));
    context.on('console', (message) => {
      const text = message.text();
      const isError = message.type() === 'error' && !text.startsWith('Failed to load resource');
      if (isError || text.includes('Content Security Policy')) this.#texts.push(text);
    });
    heard.push(this);
  }

  get texts(): readonly string[] {
    return this.#texts;
  }

  /** Those with this in their text, which the test has expected: they are no longer among the others. */
  take(part: string): readonly string[] {
    const taken = this.#texts.filter((text) => text.includes(part));
    this.#texts = this.#texts.filter((text) => !text.includes(part));
    return taken;
  }
}

function expectNoComplaints(): void {
  expect(heard.splice(0).flatMap(({ texts }) => texts)).toEqual([]);
}

// Not where a visit ends: what is thrown there would take the place of what made the test fail.
afterEach(expectNoComplaints);

/** Until no color is on its way to that of another state or theme; one that is inherited may set out after another. */
const settle = `(async () => {
  const moving = () => document.getAnimations().filter(({ playState }) => playState === 'running');
  for (let found = moving(); found.length > 0; found = moving()) await Promise.allSettled(found.map(({ finished }) => finished));
})()`;

/** Findings of axe-core at any level, and how far the page scrolls sideways: none of either. */
export async function expectSoundPage(page: Page): Promise<void> {
  // By the debugger, which the page's policy does not bind.
  await page.evaluate(axe.source);
  await page.evaluate(settle);
  const findings = await page.evaluate(async () => {
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- what the source has left there
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run();
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary = '' }) => `${id}: ${html}: ${failureSummary}`));
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

/**
 * What a page asks for from here on, once what it shows is there; but for what its feed has it ask for, which may tell
 * of a change at any time.
 */
export async function listAsked(page: Page): Promise<readonly string[]> {
  await page.getByText('Loading …').first().waitFor({ state: 'hidden' });
  const asked: string[] = [];
  page.on('request', (request) => {
    const isOfFeed = /\/api\/(?:feed|handoffs)\b/u.test(request.url()) && request.frame() === page.mainFrame();
    if (!isOfFeed) asked.push(request.url());
  });
  return asked;
}

/** Waits until it is there; fails with what the page shows instead. */
export async function expectShown(wanted: Locator): Promise<void> {
  await wanted.waitFor().catch(async (error: unknown) => {
    const shown = await wanted.page().locator('body').innerText();
    throw new Error([`${String(wanted)} is not there; the page shows:`, shown].join('\n'), { cause: error });
  });
}

export interface SignIn {
  readonly path: string;
  /** Of the field. */
  readonly label: string;
  readonly secret: string;
}

/** Signs in to the console at `url`; what another visit of the same browser begins with. */
export async function signInAt(browser: Browser, url: string, { path, label, secret }: SignIn): Promise<BrowserContextOptions> {
  await using visit = await BrowserVisit.begin(browser, url);
  const field = visit.page.getByLabel(label);
  await visit.goTo(path);
  await field.fill(secret);
  await visit.page.getByRole('button', { name: 'Sign in' }).click();
  await field.waitFor({ state: 'hidden' });
  return await visit.keepCookies();
}

export async function signInOwner(browser: Browser, url: string, key: string): Promise<BrowserContextOptions> {
  return await signInAt(browser, url, { path: '/', label: 'API key', secret: key });
}

export async function signInOperator(browser: Browser, url: string, token: string): Promise<BrowserContextOptions> {
  return await signInAt(browser, url, { path: '/operate', label: 'Operators’ token', secret: token });
}

/** Asks the admin agent at `url` of a gateway; its answer is not waited for. */
export async function askAdmin(url: string, { admin }: Pick<TenantKeys, 'admin'>, message: string): Promise<void> {
  const response = await fetch(`${url}/api/admin`, {
    method: 'POST',
    headers: { 'x-api-key': admin, 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  });
  expect(response.status).toBe(200);
  await response.body?.cancel();
}

/** One browser of one user, who is signed in where a state with cookies is given. */
export class BrowserVisit implements AsyncDisposable {
  readonly page: Page;
  readonly complaints: Complaints;
  readonly #context: BrowserContext;
  readonly #url: string;

  private constructor(context: BrowserContext, page: Page, url: string) {
    this.#context = context;
    this.#url = url;
    this.page = page;
    this.complaints = new Complaints(context);
    // Of all its tabs, and of what a route asks in their place.
    context.setDefaultTimeout(PATIENCE_MS);
  }

  /** `url`: of the console. Without moving colors, which axe-core would measure half way. */
  static async begin(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<BrowserVisit> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options });
    return new BrowserVisit(context, await context.newPage(), url);
  }

  /** Another tab of the same browser. */
  async openTab(path: string): Promise<Page> {
    const tab = await this.#context.newPage();
    await tab.goto(`${this.#url}${path}`);
    return tab;
  }

  async goTo(path: string): Promise<void> {
    await this.page.goto(`${this.#url}${path}`);
  }

  async shows(wanted: Locator): Promise<void> {
    await expectShown(wanted);
  }

  /** The cookies, for another visit. */
  async keepCookies(): Promise<BrowserContextOptions> {
    return { storageState: await this.#context.storageState() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
  }
}
