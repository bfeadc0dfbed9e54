import { describe, expect, it } from '@jest/globals';
import { gate, startScriptedSystem, type System, type TenantKeys } from '@concierge/testing';
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

async function ask(path: string, { key = keys.admin, ...init }: RequestInit & { readonly key?: string } = {}): Promise<Response> {
  return fetch(`${system.url}${path}`, { headers: { 'x-api-key': key, 'content-type': 'application/json' }, ...init });
}

/** Opens the settings, and looks whether the page is sound after a change; answers with its complaints. */
async function change(look: (page: Page) => Promise<void>, device: BrowserContextOptions = onPhone): Promise<readonly string[]> {
  await using visiting = await BrowserVisit.begin(browser, url, { ...device, ...signedIn });
  await visiting.goTo('/settings');
  await look(visiting.page);
  await expectSoundPage(visiting.page);
  return visiting.complaints.texts;
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
      await eventuallyHolds(async () => expect((await ask('/api/sessions', { key: first })).status).toBe(401));
      expect((await ask('/api/sessions', { key: await shown.innerText() })).status).toBe(200);
      for (const scope of ['cs: talk to customers’ agents', 'read: read only']) await page.getByLabel(scope).uncheck();
      expect(await page.getByRole('button', { name: 'New key' }).isDisabled()).toBe(true);
    });
    expect(complaints).toEqual([]);
  });

  it('show a key that was made before the list of keys had come', async () => {
    const complaints = await change(async (page) => {
      await page.getByRole('table', { name: 'Keys' }).waitFor();
      const made = gate();
      page.on('response', (answered) => {
        if (answered.request().method() === 'POST' && answered.url().endsWith('/api/keys')) made.open();
      });
      let isHeld = false;
      await page.route('**/api/keys', async (route) => {
        if (route.request().method() !== 'GET' || isHeld) return route.continue();
        isHeld = true;
        const response = await route.fetch();
        // Perhaps it was made before the list was read here.
        await made.opened;
        // Given up meanwhile, perhaps: the page asks once more.
        return route.fulfill({ response }).catch(() => undefined);
      });
      await page.reload();
      await page.getByLabel('Label').fill('Early');
      await page.getByRole('button', { name: 'New key' }).click();
      await page.getByText(/^ck_live_/u).waitFor();
      await page.getByRole('row', { name: /Early/u }).waitFor();
    });
    expect(complaints).toEqual([]);
  });

  it('keep what is written for the next key while the list with the last one is on its way', async () => {
    const complaints = await change(async (page) => {
      await page.getByRole('table', { name: 'Keys' }).waitFor();
      const written = gate();
      await page.route('**/api/keys', async (route) => {
        if (route.request().method() === 'GET') await written.opened;
        // Given up meanwhile, perhaps: the page asks once more.
        await route.continue().catch(() => undefined);
      });
      const label = page.getByLabel('Label');
      await label.fill('First');
      const made = page.waitForResponse((response) => response.request().method() === 'POST' && response.url().endsWith('/api/keys'));
      await page.getByRole('button', { name: 'New key', exact: true }).click();
      await made;
      await label.fill('Second');
      written.open();
      await page.getByText(/^ck_live_/u).waitFor();
      expect(await label.inputValue()).toBe('Second');
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

  it.each(['Tab', 'Shift+Tab'])('let the focus out of the preview of the widget by %s in a narrow window, too', async (key) => {
    const complaints = await change(async (page) => {
      const isIn = async (): Promise<unknown> => page.evaluate("document.activeElement.matches('iframe[title=Preview]')");
      const frame = page.frameLocator('iframe[title=Preview]');
      await frame.getByRole('dialog').waitFor();
      await frame.getByLabel('Message').focus();
      await eventuallyHolds(async () => expect(await isIn()).toBe(true));
      // One after the other: within the frame there are a few to go.
      await eventuallyHolds(async () => {
        await page.keyboard.press(key);
        expect(await isIn()).toBe(false);
      });
    });
    expect(complaints).toEqual([]);
  });

  it('store what is written, and nothing old over what has been stored elsewhere since they were opened', async () => {
    const store = async (path: string, method: string, body: object): Promise<void> => {
      expect((await ask(path, { method, body: JSON.stringify(body) })).status).toBe(200);
    };
    const read = async (path: string): Promise<unknown> => (await ask(path)).json();
    await store('/api/tenant', 'PATCH', { timezone: 'Europe/Paris', retention: { sessionsDays: 300 } });
    const complaints = await change(async (page) => {
      const save = async (label: string, text: string): Promise<void> => {
        const field = page.getByLabel(label, { exact: true });
        await field.fill(text);
        const form = page.locator('form', { has: field });
        await form.getByRole('button', { name: 'Save' }).click();
        await form.getByText('Saved.').waitFor();
      };
      const zone = page.getByLabel('Time zone');
      await eventuallyHolds(async () => expect(await zone.inputValue()).toBe('Europe/Paris'));
      await page.getByLabel('Heading', { exact: true }).waitFor();
      await store('/api/tenant', 'PATCH', { timezone: 'Europe/Berlin', retention: { sessionsDays: 200, uploadsDays: 30 } });
      await store('/api/widget', 'PUT', { origins: ['https://shop.example'], appearance: { greeting: 'Welcome' } });
      const business = page.locator('form', { has: zone });
      await business.getByLabel('Name', { exact: true }).fill('Linen & Sons');
      await business.getByRole('button', { name: 'Save' }).click();
      await business.getByText('Saved.').waitFor();
      await save('What was summarised', '90');
      await save('Heading', 'Linen help');
      expect(await zone.inputValue()).toBe('Europe/Berlin');
      expect(await page.getByLabel('Greeting', { exact: true }).inputValue()).toBe('Welcome');
    });
    expect(complaints).toEqual([]);
    expect(await read('/api/tenant')).toMatchObject({
      name: 'Linen & Sons',
      timezone: 'Europe/Berlin',
      retention: { sessionsDays: 200, historyDays: 90, uploadsDays: 30 },
    });
    expect(await read('/api/widget')).toMatchObject({
      origins: ['https://shop.example'],
      appearance: { title: 'Linen help', greeting: 'Welcome' },
    });
    await store('/api/tenant', 'PATCH', { name: null, timezone: null, retention: null });
  });

  it('show the log of events, with each try, and send dead letters again, one or all', async () => {
    const { events } = await system.scope(keys.tenantId);
    await ask('/api/event-endpoints', {
      method: 'POST',
      body: JSON.stringify({ url: 'https://shop.example/log', types: ['schedule.missed'] }),
    });
    for (const hour of [8, 9]) {
      const at = `2026-11-28T0${String(hour)}:00:00.000Z`;
      const data = { scheduleId: 's_1', name: 'Report', runId: `r_${String(hour)}`, scheduledAt: at, missedSince: null, reason: 'was off' };
      const [kept] = await events.emit({ type: 'schedule.missed', key: String(hour), at, data });
      const event = await events.files.waiting(kept?.id ?? '');
      if (event === undefined) throw new Error('the event is not there');
      const log = [{ at, status: 503, ms: 40, error: 'answered 503' }];
      await events.files.settle({ ...event, tries: 1, log, outcome: 'dead', reason: 'Every try has failed.' });
    }
    const complaints = await change(async (page) => {
      const log = page.getByRole('table', { name: 'Log of events' });
      const dead = log.getByRole('row', { name: /schedule\.missed .*https:\/\/shop\.example\/log dead letter Every try has failed\./u });
      await eventuallyHolds(async () => expect(await dead.count()).toBe(2));
      await dead.first().getByText('Its last try').click();
      await dead.first().getByText('503 · 40 ms · answered 503').waitFor();
      await expectSoundPage(page);
      await dead.first().getByRole('button', { name: 'Send again' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
      await eventuallyHolds(async () => expect(await dead.count()).toBe(1));
      const endpoints = page.getByRole('table', { name: 'Webhook events' });
      await endpoints.getByRole('button', { name: 'Send dead letters again' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Send dead letters again' }).click();
      await page.getByText('1 event waits to be sent.').waitFor();
      await page.getByRole('group', { name: 'Show events' }).getByText('dead letter').click();
      await page.getByText('There is no such event.').waitFor();
    }, {});
    expect(complaints).toEqual([]);
    expect(await (await ask('/api/events?status=waiting')).json()).toHaveLength(2);
  });

  it('are signed in to again while the sign-out before is on its way, which does not take the new sign-in with it', async () => {
    await using visiting = await BrowserVisit.begin(browser, url, await signInOwner(browser, url, keys.admin));
    const { page } = visiting;
    const [asked, leaves] = [gate(), gate()];
    const order: string[] = [];
    await page.route('**/sign-out', async (route) => {
      asked.open();
      await leaves.opened;
      order.push('signed out');
      await route.continue();
    });
    page.on('request', (request) => {
      if (request.url().endsWith('/sign-in')) order.push('signs in');
    });
    await visiting.goTo('/settings');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await asked.opened;
    await page.getByLabel('API key').fill(keys.admin);
    const signIn = page.getByRole('button', { name: 'Sign in' });
    await signIn.click();
    await eventuallyHolds(async () => expect(await signIn.isDisabled()).toBe(true));
    leaves.open();
    await visiting.shows(page.getByLabel('Label'));
    expect(order).toEqual(['signed out', 'signs in']);
    await page.reload();
    await visiting.shows(page.getByLabel('Label'));
    expect(visiting.complaints.texts).toEqual([]);
  });

  it('are signed in to by what is written, though another tab signs in and out before it is sent or taken away', async () => {
    await using visiting = await BrowserVisit.begin(browser, url);
    const { page } = visiting;
    await visiting.goTo('/settings');
    const field = page.getByLabel('API key');
    await field.fill('ck_live_half');
    const other = await visiting.openTab('/settings');
    const signIn = async (): Promise<void> => {
      await other.getByLabel('API key').fill(keys.admin);
      await other.getByRole('button', { name: 'Sign in' }).click();
      await other.getByLabel('Label').waitFor();
    };
    const signOut = async (): Promise<void> => other.getByRole('button', { name: 'Sign out' }).click();
    // Each time the first tab hears of it, and asks who is signed in.
    for (const act of [signIn, signOut, signIn]) {
      await Promise.all([page.waitForResponse('**/signed-in'), act()]);
      expect(await field.inputValue()).toBe('ck_live_half');
    }
    await field.fill('');
    await visiting.shows(page.getByLabel('Label'));
    expect(visiting.complaints.texts).toEqual([]);
  });
});
