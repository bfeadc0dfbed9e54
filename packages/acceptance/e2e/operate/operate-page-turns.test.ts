import { describe, expect, it } from '@jest/globals';
import { gate, say, startScriptedSystem, status, until, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, Locator, Page } from 'playwright-core';
import { chromiumPath, startChromium } from '../chromium.ts';
import { eventuallyHolds } from '../eventually-holds.ts';
import { askAdmin, BrowserVisit, expectSoundPage } from '../page-checks.ts';

let system: System;
let model: ScriptedModel;
let browser: Browser;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

/** Without a token the pages are open to this machine. */
async function visit(path: string): Promise<BrowserVisit> {
  const started = await BrowserVisit.begin(browser, system.uiUrls[0] ?? '');
  await started.goTo(path);
  return started;
}

/** Asks, and waits until the model has been asked: the turn runs by then, and the next one of the tenant waits. */
async function askAndRun(keys: TenantKeys, message: string): Promise<void> {
  const count = (): number => model.requests.filter(({ userText }) => userText.includes(message)).length;
  const before = count();
  await askAdmin(system.url, keys, message);
  await eventuallyHolds(async () => expect(count()).toBeGreaterThan(before));
}

const rows = (page: Page): Locator => page.getByRole('table').locator('tbody').getByRole('row');
const dialog = (page: Page): Locator => page.getByRole('dialog');

inBrowser('the operators’ pages of turns', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack, { uis: 1, crons: 1, env: { TENANT_SHARE: '1', WORKER_CONCURRENCY: '4' } }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
  });

  it('try one turn again, all that failed of the filter, and cancel all that wait or run of it after a count', async () => {
    const keys = await system.createTenant('filtered');
    const hold = gate();
    model.when(/spoilt/u, [status(400)], [status(400)], [say('fine')], [say('fine')]);
    model.when(/long/u, [until(hold.opened), say('over')]);
    await askAdmin(system.url, keys, 'spoilt one');
    await askAdmin(system.url, keys, 'spoilt two');
    await using current = await visit('/operate/turns?tenant=filtered&status=failed');
    const { page } = current;
    await eventuallyHolds(async () => expect(await rows(page).count()).toBe(2));
    await rows(page).first().getByRole('button', { name: 'Try again' }).click();
    await dialog(page).getByRole('button', { name: 'Try the turn again' }).click();
    await dialog(page).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Try failed ones again …' }).click();
    await current.shows(dialog(page).getByText('1 turn would be tried again.'));
    await current.shows(dialog(page).getByText('1 left out: tried again before'));
    await dialog(page).getByRole('button', { name: 'Try 1 again' }).click();
    await current.shows(dialog(page).getByText('1 turn is accepted again.'));
    await dialog(page).getByRole('button', { name: 'Close' }).click();
    await page.getByLabel('State').selectOption('done');
    // Not those that have failed, which stay until the others are there: what is cancelled below is counted once.
    const done = expect.stringContaining('done');
    await eventuallyHolds(async () => expect(await rows(page).allInnerTexts()).toEqual([done, done]));
    // What waits is counted before what runs: one that begins in between would be counted twice.
    await askAndRun(keys, 'long one');
    await askAdmin(system.url, keys, 'long two');
    await page.getByLabel('State').selectOption('');
    await page.getByRole('button', { name: 'Cancel all …' }).click();
    await current.shows(dialog(page).getByText('2 turns would be cancelled.'));
    await dialog(page).getByLabel('Reason (optional)').fill('They ask each other.');
    await expectSoundPage(page);
    await dialog(page).getByRole('button', { name: 'Cancel 2' }).click();
    await current.shows(dialog(page).getByText('2 turns are asked to stop.'));
    await expectSoundPage(page);
    await dialog(page).getByRole('button', { name: 'Close' }).click();
    await page.getByLabel('State').selectOption('cancelled');
    await eventuallyHolds(async () => expect(await rows(page).count()).toBe(2));
    await page.goto(`${system.uiUrls[0] ?? ''}/operate/audit?tenant=filtered`);
    const cancelled = rows(page).filter({ hasText: 'turn.cancel' }).filter({ hasText: 'Reason: They ask each other.' });
    await eventuallyHolds(async () => expect(await cancelled.count()).toBe(2));
    await page.goto(`${system.uiUrls[0] ?? ''}/operate/turns`);
    await current.shows(page.getByRole('button', { name: 'Try failed ones again …' }));
    expect(await page.getByRole('button', { name: 'Cancel all …' }).count()).toBe(0);
    hold.open();
    expect(current.complaints.texts).toEqual([]);
  });

  it('keep a line of the log open while newer ones come', async () => {
    await using current = await visit('/operate/health');
    const { page } = current;
    let asked = 0;
    const tell = (place: number): object => {
      const message = `line ${String(place)}.`;
      const at = new Date(Date.UTC(2026, 0, 1) + place * 1000).toISOString();
      const ids = { requestId: null, turnId: null, tenantId: null };
      return { at, level: 'warn', service: 'worker', message, ...ids, line: `{"n":${String(place)}}` };
    };
    await page.route(/\/ops\/api\/logs(?:\?|$)/u, async (route) => {
      asked += 1;
      // As many as one page has: with each newer one the oldest goes.
      await route.fulfill({ json: Array.from({ length: 100 }, (_, index) => tell(asked + 100 - index)) });
    });
    await page.getByRole('link', { name: 'Logs', exact: true }).click();
    const row = rows(page).filter({ hasText: 'line 90.' });
    await row.locator('summary').click();
    await current.shows(row.getByText('{"n":90}'));
    const before = asked;
    await current.shows(rows(page).getByText(`line ${String(before + 101)}.`));
    expect(await row.locator('details[open]').count()).toBe(1);
    expect(current.complaints.texts).toEqual([]);
  });

  it('cancel one turn for a reason that goes on record, or for none, from the list and from its life', async () => {
    const keys = await system.createTenant('single');
    const hold = gate();
    model.when(/tedious/u, [until(hold.opened), say('over')]);
    await askAndRun(keys, 'tedious one');
    await askAdmin(system.url, keys, 'tedious two');
    await using current = await visit('/operate/turns?tenant=single&status=waiting');
    const { page } = current;
    await eventuallyHolds(async () => expect(await rows(page).count()).toBe(1));
    await rows(page).getByRole('button', { name: 'Cancel' }).click();
    await dialog(page).getByLabel('Reason (optional)').fill(' Asked twice. ');
    await current.shows(dialog(page).getByText('It goes on record, where the tenant reads it, too.'));
    await expectSoundPage(page);
    await dialog(page).getByRole('button', { name: 'Cancel the turn' }).click();
    await dialog(page).waitFor({ state: 'detached' });
    await page.getByLabel('State').selectOption('running');
    await eventuallyHolds(async () => expect(await rows(page).allInnerTexts()).toEqual([expect.stringContaining('running')]));
    await rows(page).getByRole('link', { name: 'Life' }).click();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await current.shows(dialog(page).getByLabel('Reason (optional)'));
    await dialog(page).getByRole('button', { name: 'Cancel the turn' }).click();
    await dialog(page).waitFor({ state: 'detached' });
    await page.goto(`${system.uiUrls[0] ?? ''}/operate/audit?tenant=single`);
    const cancelled = rows(page).filter({ hasText: 'turn.cancel' });
    await eventuallyHolds(async () => expect(await cancelled.count()).toBe(2));
    expect(await cancelled.filter({ hasText: 'Reason: Asked twice.' }).count()).toBe(1);
    hold.open();
    expect(current.complaints.texts).toEqual([]);
  });

  it('keep a question, and the reason that is being written, while its turn leaves the list', async () => {
    const keys = await system.createTenant('leaving');
    const hold = gate();
    model.when(/drawn out/u, [until(hold.opened), say('over')], [say('over')]);
    await askAndRun(keys, 'drawn out one');
    await askAdmin(system.url, keys, 'drawn out two');
    await using current = await visit('/operate/turns?tenant=leaving&status=waiting');
    const { page } = current;
    await eventuallyHolds(async () => expect(await rows(page).count()).toBe(1));
    const left = gate();
    await page.route(/\/ops\/api\/turns\?/u, async (route) => {
      const response = await route.fetch();
      const body = await response.text();
      // Given up meanwhile, perhaps: the page asks once more.
      await route.fulfill({ response, body }).catch(() => undefined);
      if (body === '[]') left.open();
    });
    await rows(page).getByRole('button', { name: 'Cancel' }).click();
    const reason = dialog(page).getByLabel('Reason (optional)');
    await reason.fill('Asked twi');
    hold.open();
    await left.opened;
    await reason.pressSequentially('ce.');
    expect(await reason.inputValue()).toBe('Asked twice.');
    await dialog(page).getByRole('button', { name: 'Cancel', exact: true }).click();
    await current.shows(page.getByText('No turn found'));
    expect(current.complaints.texts).toEqual([]);
  });

  it('ask the same until they are answered, whatever another operator does meanwhile', async () => {
    await system.createTenant('stopped');
    await using current = await visit('/operate/tenants/stopped');
    const { page } = current;
    await page.getByRole('button', { name: 'Suspend' }).click();
    await current.shows(dialog(page).getByText('Suspend stopped?'));
    await using other = await visit('/operate/tenants/stopped');
    await other.page.getByRole('button', { name: 'Suspend' }).click();
    await dialog(other.page).getByRole('button', { name: 'Suspend' }).click();
    await dialog(other.page).waitFor({ state: 'detached' });
    await current.shows(page.getByText('suspended', { exact: true }));
    await dialog(page).getByRole('button', { name: 'Suspend' }).click();
    await dialog(page).waitFor({ state: 'detached' });
    await current.shows(page.getByRole('button', { name: 'Resume' }));
    expect((await (await system.scope('stopped')).settings()).suspended).toBe(true);
    expect([...current.complaints.texts, ...other.complaints.texts]).toEqual([]);
  });

  it('show what waits by tenant: how much, how long, what runs of its share, and its conversations when it is opened', async () => {
    const hold = gate();
    const held = [say('one '), until(hold.opened), say('two')];
    model.when(/patient/u, held, held, held, held);
    for (const tenant of ['queue-one', 'queue-two']) {
      const keys = await system.createTenant(tenant);
      // The most that waited is shown for an hour: never two at once.
      await askAndRun(keys, 'patient one');
      await askAdmin(system.url, keys, 'patient two');
    }
    await using current = await visit('/operate/waiting');
    const { page } = current;
    const line = page.locator('summary').filter({ hasText: 'queue-two' });
    await current.shows(line.getByText('1 turn waits'));
    await current.shows(line.getByText('1 of 1 places run'));
    await current.shows(line.getByText('For its tenant’s share 1'));
    await current.shows(line.getByRole('img', { name: 'Waiting in the last hour: at most 1' }));
    expect(await rows(page).count()).toBe(0);
    await line.focus();
    await page.keyboard.press('Enter');
    await current.shows(rows(page).getByText('the tenant has 1 of its 1 places in use'));
    expect(await rows(page).count()).toBe(1);
    await expectSoundPage(page);
    await page.getByLabel('Language').selectOption('de');
    await current.shows(line.getByText('1 von 1 Plätzen laufen'));
    await current.shows(line.getByRole('img', { name: 'Wartend in der letzten Stunde: höchstens 1' }));
    await page.setViewportSize({ width: 360, height: 740 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await expectSoundPage(page);
    await current.shows(rows(page).getByText('1 von 1 Plätzen des Mandanten sind belegt, und er ist der Nächste.'));
    hold.open();
    await current.shows(page.getByText('Nichts wartet'));
    expect(current.complaints.texts).toEqual([]);
  });

  it('show what the model calls of a tenant have cost', async () => {
    const keys = await system.createTenant('dear');
    await using current = await visit('/operate/tenants/dear');
    const { page } = current;
    await current.shows(page.getByText('Nothing was used in this time.'));
    model.when('Spend something', [say('Spent.')]);
    await askAdmin(system.url, keys, 'Spend something');
    await eventuallyHolds(async () => {
      await page.reload();
      await current.shows(page.getByText('Calls: 1'));
    });
    await current.shows(page.getByText('Tokens in'));
    await page.getByText('7\u00A0days').click();
    await current.shows(page.getByText('Calls: 1'));
    await expectSoundPage(page);
    expect(current.complaints.texts).toEqual([]);
  });

  it('keep what is written into the limits of a tenant while another operator stores others, and store both', async () => {
    await system.createTenant('limited');
    await using current = await visit('/operate/tenants/limited');
    await using other = await visit('/operate/tenants/limited');
    const { page } = current;
    await page.getByLabel('Requests per hour').fill('500');
    await other.page.getByLabel('Tokens per day').fill('9000');
    await other.page.getByRole('button', { name: 'Save' }).click();
    await other.shows(other.page.getByRole('status').getByText('Saved.'));
    await eventuallyHolds(async () => expect(await page.getByLabel('Tokens per day').inputValue()).toBe('9000'));
    expect(await page.getByLabel('Requests per hour').inputValue()).toBe('500');
    await page.getByRole('button', { name: 'Save' }).click();
    await current.shows(page.getByRole('status').getByText('Saved.'));
    const stored = { requestsPerHour: 500, tokensPerDay: 9000 };
    await eventuallyHolds(async () => expect((await (await system.scope('limited')).settings()).limits).toEqual(stored));
    expect([...current.complaints.texts, ...other.complaints.texts]).toEqual([]);
  });

  it('show a new key that is made late, and keep what is written for the next one meanwhile', async () => {
    await system.createTenant('late-keys');
    await using current = await visit('/operate/tenants/late-keys');
    const { page } = current;
    const [asked, made] = [gate(), gate()];
    await page.route(/\/tenants\/late-keys\/keys$/u, async (route) => {
      if (route.request().method() === 'POST') {
        asked.open();
        await made.opened;
      }
      await route.continue();
    });
    const label = dialog(page).getByLabel('Label');
    await page.getByRole('button', { name: 'New key' }).click();
    await label.fill('First');
    await dialog(page).getByRole('button', { name: 'Make it' }).click();
    await asked.opened;
    await dialog(page).getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'New key' }).click();
    await label.fill('Second');
    made.open();
    const shown = page.getByRole('dialog', { name: 'The new key' });
    await current.shows(shown.getByText(/^ck_live_/u));
    await shown.getByRole('button', { name: 'Close' }).click();
    await shown.waitFor({ state: 'detached' });
    expect(await dialog(page).count()).toBe(1);
    expect(await label.inputValue()).toBe('Second');
    expect(current.complaints.texts).toEqual([]);
  });

  it('say what the board of the queues is before it is opened', async () => {
    await using current = await visit('/operate');
    const { page } = current;
    await page.getByRole('link', { name: 'Wake-ups (internals)' }).click();
    await current.shows(page.getByText(/^The jobs that wake workers up: each names a conversation and carries no turn/u));
    await page.getByRole('link', { name: 'Open the board of the queues' }).click();
    await page.waitForURL('**/ops/queues');
    expect(await page.title()).toBe('Concierge wake-ups (internals)');
  });
});
