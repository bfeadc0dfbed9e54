import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Complaints } from './page-checks.ts';

const PATIENCE_MS = 60_000;

/** One visitor's browser at the shop: what it keeps, and as many tabs as they open. */
export class ShopPage implements AsyncDisposable {
  /** Addresses that a page asked for and that are neither the shop's nor the gateway's. */
  readonly foreignRequests: string[] = [];
  readonly complaints: Complaints;
  readonly #context: BrowserContext;
  readonly #homes: readonly string[];

  constructor(context: BrowserContext, homes: readonly string[]) {
    this.#context = context;
    this.complaints = new Complaints(context);
    this.#homes = homes;
    // Of all its tabs, and of what a route asks in their place.
    context.setDefaultTimeout(PATIENCE_MS);
  }

  static async begin(browser: Browser, homes: readonly string[], options: BrowserContextOptions = {}): Promise<ShopPage> {
    return new ShopPage(await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options }), homes);
  }

  /** A tab with the page, its panel closed. */
  async tab(url: string): Promise<ShopTab> {
    const page = await this.#context.newPage();
    page.on('request', (request) => {
      if (!this.#homes.some((home) => request.url().startsWith(home))) this.foreignRequests.push(request.url());
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

  /** Does nothing where the panel is open, as after a change of page. */
  async open(): Promise<void> {
    await this.page.locator('concierge-widget').waitFor({ state: 'attached' });
    if (!(await this.panel.isVisible())) await this.launcher.click();
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

/** Rules that would hide, and paint, whatever is not defended against them. */
const ownStyles =
  '* { color: red !important; font-size: 30px !important } body > :not(main) { display: none !important; opacity: 0 !important }';

/** A customer's site on a separate origin, as strict as a site with the widget can be. */
export class Shop implements AsyncDisposable {
  readonly origin: string;
  readonly #server: Server;

  private constructor(server: Server, origin: string) {
    this.#server = server;
    this.origin = origin;
  }

  /** `snippet` goes into its pages, which a script of `gateway` alone may run in; `?lang=` is their language. */
  static async open(gateway: string, snippet: (path: string) => string): Promise<Shop> {
    const policy = [
      "default-src 'none'",
      'img-src data:',
      "style-src 'self'",
      `script-src ${gateway}`,
      `connect-src ${gateway}`,
      "require-trusted-types-for 'script'",
    ].join('; ');
    const server = createServer((request, response) => {
      const [path = '/', language = 'en'] = (request.url ?? '/').split('?lang=');
      if (path === '/shop.css') {
        response.writeHead(200, { 'Content-Type': 'text/css' }).end(ownStyles);
        return;
      }
      response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy });
      const head =
        '<title>Shop</title><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="/shop.css"><link rel="icon" href="data:,">';
      response.end(
        `<!doctype html><html lang="${language}" dir="${language === 'ar' ? 'rtl' : 'ltr'}"><head>${head}</head><body><main><h1>Shop</h1></main>${snippet(path)}</body></html>`,
      );
    });
    await new Promise<void>((resolve) => {
      server.listen(0, 'localhost', resolve);
    });
    const { port } = server.address() as AddressInfo; // eslint-disable-line typescript/no-unsafe-type-assertion -- it listens on a port
    return new Shop(server, `http://localhost:${String(port)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }
}
