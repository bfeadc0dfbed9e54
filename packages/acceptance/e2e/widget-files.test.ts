import { describe, expect, it } from '@jest/globals';
import { WidgetBody } from '@concierge/contract';
import { startScriptedSystem, say, type ScriptedModel, type System } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser } from 'playwright-core';
import type { z } from 'zod';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { expectSoundPage } from './page-checks.ts';
import { Shop, ShopPage, type ShopTab } from './shop-page.ts';

let model: ScriptedModel;
let system: System;
let browser: Browser;
let shop: Shop;
let key: string;
let tenants = 0;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

async function visit(settings: z.input<typeof WidgetBody> = {}): Promise<ShopPage> {
  tenants += 1;
  const { tenantId } = await system.createTenant(`files-${String(tenants)}`);
  const { widget } = await system.scope(tenantId);
  key = (await widget.put(WidgetBody.parse({ enabled: true, origins: [shop.origin], ...settings }))).key ?? '';
  return await ShopPage.begin(browser, [shop.origin, system.url], { reducedMotion: 'reduce' });
}

/** A file for the panel, as it is dropped there or pasted into its field. */
async function give(tab: ShopTab, kind: 'drop' | 'paste', { name, text }: { readonly name: string; readonly text: string }): Promise<void> {
  await tab.page.evaluate(`{
    const data = new DataTransfer();
    data.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}));
    const { shadowRoot } = document.querySelector('concierge-widget');
    const event = ${JSON.stringify(kind)} === 'drop'
      ? new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
      : new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
    shadowRoot.querySelector(${JSON.stringify(kind)} === 'drop' ? '.log' : 'textarea').dispatchEvent(event);
  }`);
}

async function choose(tab: ShopTab, files: readonly { readonly name: string; readonly buffer: Buffer }[]): Promise<void> {
  const chooser = tab.page.waitForEvent('filechooser');
  await tab.panel.getByRole('button', { name: 'Attach a file' }).click();
  await (await chooser).setFiles(files.map((file) => ({ ...file, mimeType: 'application/octet-stream' })));
}

inBrowser('files in the web widget', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack));
    shop = stack.use(await Shop.open(system.url, () => `<script src="${system.url}/widget.js" data-key="${key}" async></script>`));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
  });

  it('are sent from the button, dropped and pasted, shown with their message, and read by the agent', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    model.when(/my invoice/u, [say('I have read them.')]);
    await choose(tab, [{ name: 'chosen.txt', buffer: Buffer.from('from the button') }]);
    await give(tab, 'drop', { name: 'dropped.txt', text: 'from the desk' });
    await give(tab, 'paste', { name: 'pasted.txt', text: 'from the clipboard' });
    await give(tab, 'drop', { name: 'mistake.txt', text: 'not this one' });
    await tab.panel.getByRole('button', { name: 'Remove: mistake.txt' }).click();
    await expectSoundPage(tab.page);
    await tab.panel.getByLabel('Message').fill('my invoice');
    await eventuallyHolds(async () => expect(await tab.panel.getByRole('button', { name: 'Send' }).isEnabled()).toBe(true));
    await tab.panel.getByRole('button', { name: 'Send' }).click();
    await tab.hears('I have read them.');
    const asked = JSON.stringify(model.requests.findLast(({ raw }) => JSON.stringify(raw).includes('my invoice'))?.raw);
    for (const text of ['from the button', 'from the desk', 'from the clipboard']) expect(asked).toContain(text);
    expect(asked).not.toContain('not this one');
    await tab.page.reload();
    const said = tab.messages('visitor').filter({ hasText: 'my invoice' });
    await said.waitFor();
    expect(await said.locator('.file').allTextContents()).toEqual(['chosen.txt', 'dropped.txt', 'pasted.txt']);
    // Without words, a message is what its files are called.
    await choose(tab, [{ name: 'alone.txt', buffer: Buffer.from('x') }]);
    await eventuallyHolds(async () => expect(await tab.panel.getByRole('button', { name: 'Send' }).isEnabled()).toBe(true));
    await tab.panel.getByRole('button', { name: 'Send' }).click();
    await tab.messages('visitor').filter({ hasText: 'alone.txt' }).waitFor();
    expect(shopping.foreignRequests).toEqual([]);
  });

  it('are refused with a reason, and what was written stays', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    await tab.panel.getByLabel('Message').fill('look at this');
    await choose(tab, [
      { name: 'program.exe', buffer: Buffer.from('7f454c460201010000000000', 'hex') },
      { name: 'film.txt', buffer: Buffer.alloc(10 * 1024 * 1024 + 1, 'a') },
      { name: 'nothing.txt', buffer: Buffer.alloc(0) },
    ]);
    const alert = tab.panel.getByRole('alert');
    await alert.getByText('program.exe: This kind of file cannot be sent.').waitFor();
    await alert.getByText('film.txt: It is larger than 10 MB.').waitFor();
    await alert.getByText('nothing.txt: It is empty.').waitFor();
    await choose(
      tab,
      Array.from({ length: 11 }, (_, index) => ({ name: `n${String(index)}.txt`, buffer: Buffer.from('x') })),
    );
    await alert.getByText('n10.txt: Too many files.').waitFor();
    expect(await alert.getByText('program.exe').count()).toBe(0);
    expect(await tab.panel.getByRole('button', { name: /^Remove/u }).count()).toBe(10);
    expect(await tab.panel.getByLabel('Message').inputValue()).toBe('look at this');
  });

  it('are not asked for where the owner allows none', async () => {
    await using shopping = await visit({ display: { files: 'refused' } });
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    await give(tab, 'drop', { name: 'dropped.txt', text: 'x' });
    expect(await tab.panel.getByRole('button', { name: 'Attach a file' }).count()).toBe(0);
    expect(await tab.panel.getByRole('button', { name: /^Remove/u }).count()).toBe(0);
    expect(await tab.page.title()).toBe('Shop');
  });
});
