import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';

const PATIENCE_MS = 20_000;

/** One visitor's browser at the shop: what it keeps, and as many tabs as they open. */
export class ShopPage implements AsyncDisposable {
  /** Addresses that a page asked for and that are neither the shop's nor the gateway's. */
  readonly foreignRequests: string[] = [];
  /** What a page threw or what its policy refused. */
  readonly complaints: string[] = [];
  readonly #context: BrowserContext;
  readonly #homes: readonly string[];

  constructor(context: BrowserContext, homes: readonly string[]) {
    this.#context = context;
    this.#homes = homes;
  }

  static async begin(browser: Browser, homes: readonly string[], options: BrowserContextOptions = {}): Promise<ShopPage> {
    return new ShopPage(await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options }), homes);
  }

  /** A tab with the page, its panel closed. */
  async tab(url: string): Promise<ShopTab> {
    const page = await this.#context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('request', (request) => {
      if (!this.#homes.some((home) => request.url().startsWith(home))) this.foreignRequests.push(request.url());
    });
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(message.text());
    });
    await page.goto(url);
    return new ShopTab(page);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
  }
}

export class ShopTab {
  readonly page: Page;
  readonly panel: Locator;

  constructor(page: Page) {
    this.page = page;
    this.panel = page.getByRole('dialog', { name: 'Chat' });
  }

  get launcher(): Locator {
    return this.page.getByRole('button', { name: 'Chat' });
  }

  async open(): Promise<void> {
    await this.launcher.click();
    await this.panel.waitFor();
  }

  async say(text: string): Promise<void> {
    await this.panel.getByLabel('Message').fill(text);
    await this.page.keyboard.press('Enter');
  }

  messages(from: 'visitor' | 'agent' | 'person'): Locator {
    return this.panel.locator(`[data-from=${from}]`);
  }

  /** Waits until the agent has written this, and no more comes; the greeting is its first message. */
  async hears(text: string | RegExp): Promise<Locator> {
    const message = this.panel.locator('[data-from=agent][data-state=still]').filter({ hasText: text });
    await message.waitFor();
    return message;
  }
}
