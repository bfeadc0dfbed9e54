import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { Complaints, expectShown } from './page-checks.ts';

const PATIENCE_MS = 60_000;

/** One user at the console: a separate browser context, signed in with a key. */
export class ConsolePage implements AsyncDisposable {
  readonly page: Page;
  /** Addresses outside the console that the page asked for. */
  readonly foreignRequests: string[] = [];
  readonly complaints: Complaints;
  readonly #context: BrowserContext;

  private constructor(context: BrowserContext, page: Page, url: string) {
    this.#context = context;
    this.page = page;
    // Of all its tabs, and of what a route asks in their place.
    context.setDefaultTimeout(PATIENCE_MS);
    page.on('request', (request) => {
      if (!request.url().startsWith(url) && !/^(?:blob|data):/u.test(request.url())) this.foreignRequests.push(request.url());
    });
    this.complaints = new Complaints(context);
  }

  static async open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<ConsolePage> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    const visit = new ConsolePage(context, await context.newPage(), url);
    await visit.page.goto(url === 'about:blank' ? url : `${url}/chat`);
    return visit;
  }

  async signIn(key: string): Promise<void> {
    await this.page.getByLabel('API key').fill(key);
    await this.page.getByRole('button', { name: 'Sign in' }).click();
  }

  /** Another tab of the same browser. */
  async openTab(): Promise<Page> {
    const tab = await this.#context.newPage();
    await tab.goto(this.page.url());
    return tab;
  }

  /** Signs in with a key that must be good. */
  async enter(key: string): Promise<void> {
    await this.signIn(key);
    await this.shows(this.page.getByLabel('Message', { exact: true }));
  }

  async say(text: string): Promise<void> {
    await this.page.getByLabel('Message', { exact: true }).fill(text);
    await this.page.keyboard.press('Enter');
  }

  /** The turn with this number, from 0. */
  turn(index: number): Locator {
    return this.page.getByRole('article', { name: 'Turn' }).nth(index);
  }

  async turnReaches(index: number, state: 'waiting' | 'running' | 'done' | 'failed'): Promise<void> {
    await this.shows(this.page.locator(`article:nth-of-type(${String(index + 1)})[data-turn=${state}]`));
  }

  /** Waits until it is there; fails with what the page shows instead. */
  async shows(wanted: Locator): Promise<void> {
    await expectShown(wanted);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
  }
}
