import { describe, expect, it } from '@jest/globals';
import { callTools, eventually, gate, say, startScriptedSystem, status, until, type ScriptedModel, type System } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { askAdmin, BrowserVisit, expectShown, expectSoundPage, keepPicture, onPhone } from './page-checks.ts';

const opsToken = 'the-token-of-operators';

let system: System;
let model: ScriptedModel;
let browser: Browser;
/** Signed in. */
let operator: BrowserContextOptions;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

async function visit(path: string, options: BrowserContextOptions = {}): Promise<BrowserVisit> {
  const started = await BrowserVisit.begin(browser, system.uiUrls[0] ?? '', { ...operator, ...options });
  await started.goTo(path);
  return started;
}

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Operators’ token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

const heading = (page: Page, name: string): Locator => page.getByRole('heading', { level: 1, name });
const rows = (page: Page): Locator => page.getByRole('table').locator('tbody').getByRole('row');
const dialog = (page: Page): Locator => page.getByRole('dialog');

/** Two messages that their channel refused, and one that must not be sent. */
async function makeDeadLetters(tenantId: string): Promise<void> {
  const { outbox } = await system.scope(tenantId);
  const outbound = { kind: 'message', channel: 'channel_c', sessionId: '0'.repeat(32), text: 'Hi', agent: 'cs', turnId: 't_1' } as const;
  for (const [callId, state] of [
    ['1', 'failed'],
    ['2', 'failed'],
    ['3', 'withheld'],
  ] as const) {
    const { id } = (await outbox.accept({ ...outbound, to: callId, callId })).message;
    const at = new Date().toISOString();
    const delivery = await outbox.record(id, [{ kind: 'end', at, state, problem: { code: '403', message: 'blocked' } }]);
    if (delivery !== undefined) await outbox.end(delivery);
  }
}

inBrowser('the operators’ pages', () => {
  setUpOnce(async (stack) => {
    const env = { OPS_TOKEN: opsToken, TENANT_SHARE: '1', WORKER_CONCURRENCY: '4' };
    ({ system, model } = await startScriptedSystem(stack, { uis: 1, crons: 1, env }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
    await using first = await BrowserVisit.begin(browser, system.uiUrls[0] ?? '');
    await first.goTo('/operate');
    await signIn(first.page, opsToken);
    await first.shows(heading(first.page, 'Now'));
    operator = await first.keepCookies();
  });

  it('move by the feed of all tenants, and ask for nothing by the clock', async () => {
    const keys = await system.createTenant('fed');
    model.when('Feed me', [say('Fed.')]);
    await using started = await BrowserVisit.begin(browser, system.uiUrls[0] ?? '', operator);
    const { page } = started;
    await page.clock.install();
    const feed = page.waitForResponse((response) => response.url().endsWith('/ops/api/feed'));
    await started.goTo(`/operate/turns?tenant=${keys.tenantId}`);
    await started.shows(heading(page, 'Turns'));
    expect((await feed).status()).toBe(200);
    // Seconds that a clock would need do not pass from here on. A time that is over when the page hears of it is
    // refused, but the clock stands by then: the next one is ahead of it.
    await eventuallyHolds(async () => page.clock.pauseAt(Date.now() + 1000));
    await askAdmin(system.url, keys, 'Feed me');
    // The page rests for one second between two requests, which needs 25 looks; all looks together take eight, and a
    // page without a feed would ask after ten.
    await eventually(
      async () => {
        await page.clock.runFor(40);
        expect(await rows(page).filter({ hasText: 'done' }).count()).toBe(1);
        return true;
      },
      { everyMs: 300 },
    );
  });

  it('let in who has the token, in all tabs of a browser, until one of them signs out', async () => {
    await using guest = await BrowserVisit.begin(browser, system.uiUrls[0] ?? '');
    await guest.goTo('/operate/health');
    await signIn(guest.page, 'another-token');
    await guest.shows(guest.page.getByRole('alert').getByText('That is not the token.'));
    const other = await guest.openTab('/operate/workers');
    await expectShown(other.getByLabel('Operators’ token'));
    await signIn(guest.page, opsToken);
    await guest.shows(heading(guest.page, 'Health'));
    await guest.shows(guest.page.getByRole('cell', { name: 'Sandbox' }));
    await keepPicture(guest.page, 'health');
    await guest.page.getByLabel('Language').selectOption('de');
    await guest.shows(guest.page.getByText('Alle gehen bis auf 2 s wie die Uhr von Redis.'));
    await guest.page.getByLabel('Sprache').selectOption('en');
    await guest.shows(guest.page.getByText('All are within 2 s of Redis’ clock.'));
    await expectShown(heading(other, 'Workers'));
    await other.getByRole('button', { name: 'Sign out' }).click();
    await expectShown(other.getByLabel('Operators’ token'));
    await guest.shows(guest.page.getByLabel('Operators’ token'));
    expect(guest.complaints.texts).toEqual([]);
  });

  it('keep what is typed into the sign-in, however slowly', async () => {
    await using guest = await BrowserVisit.begin(browser, system.uiUrls[0] ?? '');
    await guest.page.clock.install();
    await guest.goTo('/operate/health');
    const field = guest.page.getByLabel('Operators’ token');
    await field.fill('half a token');
    await guest.page.clock.runFor(10_000);
    await guest.page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    expect(await field.inputValue()).toBe('half a token');
  });

  it('say why a turn waits and who runs, and cancel what waits', async () => {
    const keys = await system.createTenant('flood');
    const hold = gate();
    const held = [say('one '), until(hold.opened), say('two')];
    model.when(/slow/u, held, held);
    await askAdmin(system.url, keys, 'slow one');
    await askAdmin(system.url, keys, 'slow two');
    await using current = await visit('/operate');
    const { page } = current;
    await current.shows(page.getByRole('status').getByText(/^flood: a turn has waited/u));
    await page.getByRole('link', { name: /^For its tenant’s share/u }).click();
    await current.shows(heading(page, 'Waiting'));
    await eventuallyHolds(async () => expect(await rows(page).count()).toBe(1));
    await current.shows(rows(page).getByText('the tenant has 1 of its 1 places in use'));
    await keepPicture(page, 'waiting');
    await rows(page).getByRole('button', { name: 'Cancel' }).click();
    await dialog(page).getByRole('button', { name: 'Cancel the turn' }).click();
    await dialog(page).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Workers', exact: true }).click();
    await current.shows(heading(page, 'Workers'));
    await rows(page).getByRole('link').click();
    await current.shows(heading(page, 'Turns'));
    await eventuallyHolds(async () => expect(await rows(page).allInnerTexts()).toEqual([expect.stringContaining('running')]));
    hold.open();
    // The one that was cancelled ends when its place comes.
    await page.getByLabel('Id of a turn or conversation').fill('');
    await page.getByLabel('State').selectOption('cancelled');
    await page.getByLabel('Tenant').fill('flood');
    await eventuallyHolds(async () => {
      await page.reload();
      await current.shows(heading(page, 'Turns'));
      await current.shows(rows(page).first());
      expect(await rows(page).allInnerTexts()).toEqual([expect.stringContaining('cancelled')]);
    });
  });

  it('show how it was in charts that are read together, the log of a turn that failed, and drain a worker', async () => {
    const keys = await system.createTenant('observed');
    model.when(/of the log/u, [status(400)]);
    await askAdmin(system.url, keys, 'the turn of the log');
    await using current = await visit('/operate/turns?tenant=observed&status=failed');
    const { page } = current;
    await eventuallyHolds(async () => {
      await page.reload();
      await current.shows(rows(page).first());
    });
    await rows(page).getByRole('link', { name: 'Log' }).click();
    await current.shows(heading(page, 'Logs'));
    await eventuallyHolds(async () => {
      await page.reload();
      await current.shows(rows(page).locator('summary', { hasText: 'turn failed' }).first());
    });
    await expectSoundPage(page);
    await page.goto(`${system.uiUrls[0] ?? ''}/operate`);
    await current.shows(heading(page, 'Now'));
    await eventuallyHolds(async () => expect(await page.locator('figure .u-over').count()).toBe(4));
    await page.locator('figure .u-over').first().hover({ force: true });
    // What is pointed at in one is shown in all.
    await eventuallyHolds(async () => expect(await page.locator('.u-cursor-x').count()).toBe(4));
    await expectSoundPage(page);
    // By its label: a press by force goes where it stood, also after what is above it has moved it.
    await page.locator('label', { hasText: '7 days' }).click();
    await eventuallyHolds(async () => expect(await page.getByRole('radio', { name: '7 days' }).isChecked()).toBe(true));
    expect(page.url()).toContain('range=7d');
    await page.getByRole('link', { name: 'Workers', exact: true }).click();
    await rows(page).getByRole('button', { name: 'Drain …' }).click();
    await dialog(page).getByRole('button', { name: 'Drain it' }).click();
    await dialog(page).waitFor({ state: 'detached' });
    await rows(page).getByRole('button', { name: 'Take turns again' }).click();
    await current.shows(rows(page).getByRole('button', { name: 'Drain …' }));
    await expectSoundPage(page);
  });

  it('try all failed turns of a cause again, after they have said how many', async () => {
    const keys = await system.createTenant('unlucky');
    model.when(/broken/u, [status(400)], [status(400)], [say('fine')], [say('fine')]);
    await askAdmin(system.url, keys, 'broken one');
    await askAdmin(system.url, keys, 'broken two');
    await using current = await visit('/operate/failures?tenant=unlucky');
    const { page } = current;
    await eventuallyHolds(async () => {
      await page.reload();
      await current.shows(rows(page).first());
      expect(await rows(page).allInnerTexts()).toEqual([expect.stringMatching(/^\s*2\b[\s\S]*provider_error/u)]);
    });
    await page.getByRole('button', { name: 'Try all again …' }).click();
    await current.shows(dialog(page).getByText('2 turns would be tried again.'));
    await dialog(page).getByRole('button', { name: 'Try 2 again' }).click();
    await current.shows(dialog(page).getByText('2 turns are accepted again.'));
    await dialog(page).getByRole('button', { name: 'Close' }).click();
    await page.goto(`${system.uiUrls[0] ?? ''}/operate/turns?tenant=unlucky&status=done`);
    await eventuallyHolds(async () => {
      await page.reload();
      await current.shows(heading(page, 'Turns'));
      await current.shows(rows(page).first());
      expect(await rows(page).count()).toBe(2);
    });
  });

  it('show the life of a turn from the list, with its prompt, tools in words and money, and none of its texts', async () => {
    const keys = await system.createTenant('watched');
    model.when(/look it up/u, [callTools([{ name: 'list_files', args: {} }])], [say('It is there.')]);
    await askAdmin(system.url, keys, 'look it up');
    await using current = await visit('/operate/turns?tenant=watched&status=done');
    const { page } = current;
    await eventuallyHolds(async () => {
      await page.reload();
      await current.shows(heading(page, 'Turns'));
      await current.shows(rows(page).getByRole('link', { name: 'Life' }));
    });
    await current.shows(rows(page).getByText('Web · client'));
    await rows(page).getByRole('link', { name: 'Life' }).click();
    await current.shows(heading(page, 'Life of a turn'));
    const named = (name: RegExp): Locator => page.getByRole('rowheader', { name });
    for (const name of [/^received client/u, /^prompt[\s\S]*AGENTS\.md/u, /^tool List files/u, /^saved/u]) await current.shows(named(name));
    expect(await named(/^model/u).count()).toBe(2);
    await current.shows(page.getByTitle('Name for the model: list_files'));
    expect(await page.getByRole('main').innerText()).not.toContain('look it up');
    await expectSoundPage(page);
    await keepPicture(page, 'life-of-a-turn');
    const path = new URL(page.url()).pathname;
    await using phone = await visit(path, { ...onPhone, locale: 'de-DE' });
    await phone.shows(heading(phone.page, 'Verlauf eines Turns'));
    await phone.shows(phone.page.getByRole('rowheader', { name: /^Werkzeug Dateien auflisten/u }));
    await expectSoundPage(phone.page);
    const picture = phone.page.getByRole('region', { name: 'Was geschah, der Zeit nach' });
    expect(await picture.evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
  });

  it('send dead letters again, but for what must not be sent', async () => {
    const { tenantId } = await system.createTenant('silent');
    await makeDeadLetters(tenantId);
    await using current = await visit('/operate/deliveries?tenant=silent');
    const { page } = current;
    await page.getByRole('button', { name: 'Send all again …' }).click();
    await current.shows(dialog(page).getByText('2 would be sent again.'));
    await current.shows(dialog(page).getByText('1 left out: must not be sent'));
    await dialog(page).getByRole('button', { name: 'Send 2 again' }).click();
    await current.shows(dialog(page).getByText('2 on the way again.'));
    expect(current.complaints.texts).toEqual([]);
  });

  it('put the index of a tenant right after a comparison, and cancel all its turns with a reason', async () => {
    const keys = await system.createTenant('looped');
    model.when('Index me', [say('Indexed.')]);
    await askAdmin(system.url, keys, 'Index me');
    const scope = await system.scope('looped');
    const listTitles = async (): Promise<string[]> => (await scope.index.listSessions({ limit: 9 })).items.map(({ title }) => title);
    await eventuallyHolds(async () => expect(await listTitles()).toEqual(['Index me']));
    const [listed] = (await scope.index.listSessions({ limit: 1 })).items;
    const session = await scope.sessions.load(listed?.id ?? '');
    if (session === undefined) throw new Error('there is no conversation');
    await scope.index.putSession({ ...session, id: 'f'.repeat(32), title: 'Never held', turns: [] });
    await using current = await visit('/operate/tenants/looped');
    const { page } = current;
    await page.getByRole('button', { name: 'Compare with the files' }).click();
    await current.shows(page.getByText('1 row differs from the files.'));
    await current.shows(
      rows(page)
        .filter({ hasText: /^Conversations/u })
        .getByText('1', { exact: true }),
    );
    expect(await listTitles()).toHaveLength(2);
    await keepPicture(page, 'drift');
    await expectSoundPage(page);
    await page.getByRole('button', { name: 'Put it right …' }).click();
    await dialog(page).getByRole('button', { name: 'Put 1 row right' }).click();
    await current.shows(page.getByText('1 row is put right.'));
    expect(await listTitles()).toEqual(['Index me']);
    await page.getByRole('button', { name: 'Compare with the files' }).click();
    await current.shows(page.getByText('The index matches the files.'));

    const hold = gate();
    const held = [say('one '), until(hold.opened), say('two')];
    model.when(/loop/u, held, held);
    await askAdmin(system.url, keys, 'loop one');
    // They are counted once, when the dialog is opened: the first one has to run by then.
    await eventuallyHolds(async () => expect(model.requests.some(({ userText }) => userText.includes('loop one'))).toBe(true));
    await askAdmin(system.url, keys, 'loop two');
    await eventuallyHolds(async () => expect(await scope.inbox.turnIds()).toHaveLength(2));
    await page.getByRole('button', { name: 'Cancel all turns …' }).click();
    await current.shows(dialog(page).getByText('1 waiting and 1 running would be cancelled.'));
    const confirm = dialog(page).getByRole('button', { name: 'Cancel 2 turns' });
    expect(await confirm.isDisabled()).toBe(true);
    await dialog(page).getByLabel('Reason').fill('Their own bots talk to each other.');
    await keepPicture(page, 'cancel-all');
    await confirm.click();
    await current.shows(dialog(page).getByText('2 turns are cancelled.'));
    await dialog(page).getByRole('button', { name: 'Close' }).click();
    hold.open();
    await eventuallyHolds(async () => expect(await scope.inbox.turnIds()).toEqual([]));
    await page.goto(`${system.uiUrls[0] ?? ''}/operate/audit?tenant=looped`);
    await current.shows(
      rows(page).filter({ hasText: 'turn.cancel-all' }).getByText('2 turns · Reason: Their own bots talk to each other.'),
    );
    await current.shows(rows(page).getByText('index.rebuild', { exact: true }));
  });

  it('make a tenant, limit it, replace a key, suspend it, delete it, and import it again, all of it on record', async () => {
    await using current = await visit('/operate/tenants');
    const { page } = current;
    await page.getByRole('button', { name: 'New tenant' }).click();
    await dialog(page).getByLabel('Id', { exact: true }).fill('shop');
    await dialog(page).getByRole('button', { name: 'Make it' }).click();
    await current.shows(
      dialog(page)
        .getByText(/^ck_live_/u)
        .first(),
    );
    await dialog(page).getByRole('button', { name: 'Open' }).click();
    await current.shows(heading(page, 'shop'));
    await page.getByLabel('Requests per hour').fill('many');
    await current.shows(page.getByText('Must be a number above 0.'));
    await page.getByLabel('Requests per hour').fill('500');
    await page.getByRole('button', { name: 'Save' }).click();
    await eventuallyHolds(async () => expect((await (await system.scope('shop')).settings()).limits).toEqual({ requestsPerHour: 500 }));
    await page.getByRole('button', { name: 'Replace' }).first().click();
    await dialog(page).getByRole('button', { name: 'Replace' }).click();
    await current.shows(page.getByRole('dialog', { name: 'The new key' }).getByText(/^ck_live_/u));
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Suspend' }).click();
    await dialog(page).getByRole('button', { name: 'Suspend' }).click();
    await current.shows(page.getByText('suspended', { exact: true }));
    const [archive] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export' }).click()]);
    await page.getByRole('button', { name: 'Delete …' }).click();
    await page.getByLabel('Type shop to go on').fill('shop');
    await page.getByRole('button', { name: 'Delete the tenant' }).click();
    await dialog(page).getByRole('button', { name: 'Delete for good' }).click();
    await current.shows(heading(page, 'Tenants'));
    for (const as of ['', 'copy']) {
      await page.getByRole('button', { name: 'Import' }).click();
      await dialog(page)
        .getByLabel('The archive of an export')
        .setInputFiles(await archive.path());
      await dialog(page).getByLabel('Another id').fill(as);
      await expectSoundPage(page);
      await dialog(page).getByRole('button', { name: 'Import' }).click();
      await current.shows(page.getByRole('dialog', { name: as === '' ? 'shop is there' : 'copy is there' }));
      // A copy gets keys of its own; what comes back has those that it had.
      expect(
        await dialog(page)
          .getByText(/^ck_live_/u)
          .count(),
      ).toBe(as === '' ? 0 : 2);
      await page.keyboard.press('Escape');
    }
    await page.getByRole('link', { name: 'Audit' }).click();
    for (const act of ['tenant.create', 'tenant.update', 'key.rotate', 'tenant.suspend', 'tenant.delete', 'tenant.import'])
      await current.shows(rows(page).filter({ hasText: 'shop' }).getByText(act, { exact: true }).first());
  });
});
