import { describe, expect, it } from '@jest/globals';
import { WidgetBody } from '@concierge/contract';
import { startScriptedSystem, say, type ScriptedModel, type System } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import type { z } from 'zod';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { expectSoundPage, onPhone } from './page-checks.ts';
import { Shop, ShopPage } from './shop-page.ts';

let model: ScriptedModel;
let system: System;
let browser: Browser;
let shop: Shop;
let key: string;
let tenants = 0;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

/** A visitor of a shop whose widget looks like this. */
async function visit(settings: z.input<typeof WidgetBody> = {}, options: BrowserContextOptions = {}): Promise<ShopPage> {
  tenants += 1;
  const { tenantId } = await system.createTenant(`look-${String(tenants)}`);
  const { widget } = await system.scope(tenantId);
  key = (await widget.put(WidgetBody.parse({ enabled: true, origins: [shop.origin], ...settings }))).key ?? '';
  return await ShopPage.begin(browser, [shop.origin, system.url], options);
}

inBrowser('the look of the web widget', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack));
    shop = stack.use(
      await Shop.open(system.url, (path) => {
        const own = path === '/own' ? '<main><button type="button" data-concierge-open>Talk to us</button></main>' : '';
        return `${own}<script src="${system.url}/widget.js" data-key="${key}" async></script>`;
      }),
    );
    browser = stack.use(await startChromium(chromiumPath ?? ''));
  });

  it('shows tables and lists in lists, and when a message came', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    model.when(/prices/u, [say('Our prices:\n\n| Size | Price |\n|---|---|\n| **S** | 1 € |\n\n- Colours\n  1. red\n  2. blue')]);
    await tab.say('prices');
    const reply = await tab.hears('Our prices');
    await eventuallyHolds(async () => expect(await reply.getByRole('cell').allTextContents()).toEqual(['S', '1 €']));
    expect(await reply.getByRole('columnheader').allTextContents()).toEqual(['Size', 'Price']);
    expect(await reply.locator('ul > li > ol > li').allTextContents()).toEqual(['red', 'blue']);
    const time = reply.locator('time');
    await time.waitFor();
    expect(Date.now() - Date.parse((await time.getAttribute('datetime')) ?? '')).toBeLessThan(120_000);
    expect(await tab.messages('visitor').locator('time').innerText()).toMatch(/\d:\d\d/u);
  });

  it('speaks the language of the page, or of the browser, with the owner’s own texts, and from the right', async () => {
    const texts = { es: { title: 'Pregunte', greeting: 'Buenas', placeholder: 'Diga' } };
    await using shopping = await visit({ display: { texts } }, { locale: 'fr-FR' });
    const tab = await shopping.tab(`${shop.origin}/?lang=de-CH`);
    await tab.open();
    await tab.hears('Wie können wir helfen?');
    await tab.panel.getByRole('button', { name: 'Senden' }).waitFor();
    // Italian is not spoken: the browser's French is.
    await tab.page.goto(`${shop.origin}/?lang=it`);
    await tab.hears('Bonjour');
    await tab.page.goto(`${shop.origin}/?lang=es`);
    const spanish = tab.page.getByRole('dialog', { name: 'Pregunte' });
    await spanish.getByText('Buenas').waitFor();
    expect(await spanish.getByLabel('Mensaje').getAttribute('placeholder')).toBe('Diga');
    await tab.page.goto(`${shop.origin}/?lang=ar`);
    const arabic = tab.page.getByRole('dialog', { name: 'الدردشة' });
    await arabic.getByText('كيف يمكننا المساعدة؟').waitFor();
    const direction = `getComputedStyle(document.querySelector('concierge-widget').shadowRoot.querySelector('.panel')).direction`;
    expect(await tab.page.evaluate(direction)).toBe('rtl');
    model.when(/latin/u, [say('In English, please.')]);
    await arabic.getByLabel('الرسالة').fill('latin');
    await tab.page.keyboard.press('Enter');
    const said = arabic.getByText('In English, please.');
    await said.waitFor();
    const shownSaid = `[...document.querySelector('concierge-widget').shadowRoot.querySelectorAll('[data-from=agent] p')].at(-1)`;
    expect(await tab.page.evaluate(`getComputedStyle(${shownSaid}).direction`)).toBe('ltr');
  });

  it('is as light, and where, the owner says, and is opened by elements of the page', async () => {
    const display = { theme: 'light', offsetSide: 50, offsetBottom: 90, zIndex: 7 } as const;
    await using shopping = await visit({ display, appearance: { position: 'left' } }, { colorScheme: 'dark' });
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    const read = async (what: string): Promise<unknown> =>
      await tab.page.evaluate(`getComputedStyle(document.querySelector('concierge-widget').shadowRoot.querySelector('.panel')).${what}`);
    expect(await read('backgroundColor')).toBe('rgb(255, 255, 255)');
    expect(await read('zIndex')).toBe('7');
    const launcher = await tab.launcher.boundingBox();
    expect([launcher?.x, (launcher?.y ?? 0) + (launcher?.height ?? 0)]).toEqual([50, 800 - 90]);
    await using other = await visit({ display: { theme: 'dark', launcher: 'hidden' } }, { colorScheme: 'light' });
    const own = await other.tab(`${shop.origin}/own`);
    await own.page.locator('concierge-widget').waitFor({ state: 'attached' });
    expect(await own.launcher.count()).toBe(0);
    const opener = own.page.getByRole('button', { name: 'Talk to us' });
    await opener.click();
    await own.panel.waitFor();
    const paper = `getComputedStyle(document.querySelector('concierge-widget').shadowRoot.querySelector('.panel')).backgroundColor`;
    expect(await own.page.evaluate(paper)).toBe('rgb(22, 25, 29)');
    await own.page.keyboard.press('Escape');
    await own.panel.waitFor({ state: 'hidden' });
    expect(await opener.evaluate((button) => button.matches(':focus'))).toBe(true);
  });

  it.each([
    ['light', {}],
    ['dark', {}],
    ['light', onPhone],
    ['dark', onPhone],
  ] as const)('has nothing that axe-core finds in the %s, in a window like %j', async (theme, options) => {
    await using shopping = await visit({ display: { theme } }, { reducedMotion: 'reduce', ...options });
    const tab = await shopping.tab(`${shop.origin}/plain`);
    await tab.open();
    model.when(/everything/u, [
      say('**All** of [it](https://shop.example/):\n\n| a | b |\n|---|---|\n| 1 | `2` |\n\n> c\n\n```\nd\n```\n- e'),
    ]);
    await tab.say('everything');
    await tab.hears('All of it');
    await tab.messages('agent').locator('time').waitFor();
    expect(await tab.panel.isVisible()).toBe(true);
    await expectSoundPage(tab.page);
  });

  it('keeps the focus while it covers the page, as on a phone, and nowhere else', async () => {
    await using shopping = await visit({}, onPhone);
    const tab = await shopping.tab(`${shop.origin}/own`);
    await tab.open();
    const own = tab.page.getByRole('button', { name: 'Talk to us' });
    const { keyboard } = tab.page;
    const readFocus = async (): Promise<unknown> => tab.page.evaluate('document.activeElement.localName');
    /** What has the focus after each of so many presses. */
    const press = async (key: string): Promise<unknown[]> => {
      const places: unknown[] = [];
      for (let presses = 0; presses < 8; presses += 1) {
        await keyboard.press(key);
        places.push(await readFocus());
      }
      return places;
    };
    expect(await tab.panel.getAttribute('aria-modal')).toBe('true');
    const inside = Array.from({ length: 8 }, () => 'concierge-widget');
    expect(await press('Tab')).toEqual(inside);
    expect(await press('Shift+Tab')).toEqual(inside);
    // On the next page it is open from the start, over all of the page.
    await tab.page.reload();
    await tab.panel.waitFor();
    await eventuallyHolds(async () => expect(await readFocus()).toBe('concierge-widget'));
    expect(await press('Shift+Tab')).toEqual(inside);
    // The phone is turned: the page is there beside it.
    await tab.page.setViewportSize({ width: 740, height: 360 });
    await eventuallyHolds(async () => expect(await tab.panel.getAttribute('aria-modal')).toBeNull());
    await eventuallyHolds(async () => {
      await keyboard.press('Tab');
      expect(await own.evaluate((button) => button.matches(':focus'))).toBe(true);
    });
    // And turned back.
    await tab.page.setViewportSize({ width: 360, height: 740 });
    await eventuallyHolds(async () => expect(await readFocus()).toBe('concierge-widget'));
    await keyboard.press('Escape');
    await tab.panel.waitFor({ state: 'hidden' });
  });
});
