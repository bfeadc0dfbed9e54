import { describe, expect, it } from '@jest/globals';
import { startScriptedSystem, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { BrowserVisit, expectSoundPage, onPhone, signInOwner } from './page-checks.ts';

let system: System;
let browser: Browser;
let url: string;
let keys: TenantKeys;
let signedIn: BrowserContextOptions;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

async function ask(path: string, key = keys.admin): Promise<Response> {
  return fetch(`${system.url}${path}`, { headers: { 'x-api-key': key } });
}

/** Opens the settings on a phone, and looks whether the page is sound after a change; answers with its complaints. */
async function change(look: (page: Page) => Promise<void>): Promise<readonly string[]> {
  await using visiting = await BrowserVisit.begin(browser, url, { ...onPhone, ...signedIn });
  await visiting.goTo('/settings');
  await look(visiting.page);
  await expectSoundPage(visiting.page);
  return visiting.complaints;
}

const answer = (page: Page, action: string): Promise<void> => page.getByRole('dialog').getByRole('button', { name: action }).click();

inBrowser('the settings of an owner', () => {
  setUpOnce(async (stack) => {
    ({ system } = await startScriptedSystem(stack, { uis: 1 }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
    url = system.uiUrls[0] ?? '';
    keys = await system.createTenant('shop');
    signedIn = await signInOwner(browser, url, keys.admin);
  });

  it('make a key with an end and several rights, replace it, and leave that of the sign-in alone', async () => {
    const complaints = await change(async (page) => {
      const table = page.getByRole('table', { name: 'Keys' });
      const row = (name: RegExp): Locator => table.getByRole('row', { name });
      const shown = page.getByText(/^ck_live_/u);
      await row(/this sign-in/u).waitFor();
      expect(
        await row(/this sign-in/u)
          .getByRole('button', { name: 'Replace' })
          .count(),
      ).toBe(0);
      await page.getByLabel('Label').fill('Till');
      await page.getByLabel('Last day').fill('2031-05-04');
      await page.getByLabel('read: read only').check();
      await page.getByRole('button', { name: 'New key' }).click();
      await shown.waitFor();
      const first = await shown.innerText();
      const till = row(/Till .*talk to customers’ agents, read only .*2031/u);
      await till.getByRole('button', { name: 'Replace' }).click();
      await answer(page, 'Replace');
      await eventuallyHolds(async () => expect(await shown.innerText()).not.toBe(first));
      await row(/Till .*revoked/u).waitFor();
      await till.waitFor();
      await eventuallyHolds(async () => expect((await ask('/api/sessions', first)).status).toBe(401));
      expect((await ask('/api/sessions', await shown.innerText())).status).toBe(200);
      for (const scope of ['cs: talk to customers’ agents', 'read: read only']) await page.getByLabel(scope).uncheck();
      expect(await page.getByRole('button', { name: 'New key' }).isDisabled()).toBe(true);
    });
    expect(complaints).toEqual([]);
  });

  it('say above what the widget lies and who may use it, and replace its key and its secret', async () => {
    const complaints = await change(async (page) => {
      const form = page.locator('form', { has: page.getByLabel('Theme') });
      await page.getByLabel('Above what of the page').fill('900');
      await page.getByLabel('Only visitors that my own server has signed in').check();
      await form.getByRole('button', { name: 'Save' }).click();
      await form.getByRole('alert').waitFor();
      await page.getByText('It needs a secret: make one first.').waitFor();
      await page.getByRole('button', { name: 'New secret' }).click();
      await answer(page, 'New secret');
      await page.getByText('Its secret: copy it now, it is not shown again').waitFor();
      await page.getByText('It needs a secret: make one first.').waitFor({ state: 'detached' });
      await form.getByRole('button', { name: 'Save' }).click();
      await form.getByText('Saved.').waitFor();
      const widget = async (): Promise<unknown> => (await ask('/api/widget')).json();
      expect(await widget()).toMatchObject({ display: { zIndex: 900 }, requireSenderToken: true, secret: 'set' });
      const snippet = page.getByText(/data-key="ck_pub_shop_/u);
      await snippet.waitFor();
      const before = await snippet.innerText();
      await page.getByRole('button', { name: 'New key for pages' }).click();
      await answer(page, 'New key for pages');
      await eventuallyHolds(async () => expect(await snippet.innerText()).not.toBe(before));
    });
    expect(complaints).toEqual([]);
  });
});
