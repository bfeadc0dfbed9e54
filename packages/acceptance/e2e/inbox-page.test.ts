import { describe, expect, it } from '@jest/globals';
import { callTools, gate, say, startScriptedSystem, until, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { BrowserVisit, expectShown, expectSoundPage, keepPicture, onPhone } from './page-checks.ts';

let system: System;
let model: ScriptedModel;
let browser: Browser;
let url: string;
let keys: TenantKeys;
let signedIn: BrowserContextOptions;
let tenants = 0;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

interface Written {
  readonly reply: string;
  readonly contact_id: string;
}

/** A customer writes on Telegram. */
async function write(sender: string, message: string): Promise<Written> {
  const answer = await fetch(`${system.url}/api/cs`, {
    method: 'POST',
    headers: { 'x-api-key': keys.cs, 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ message, sender, channel: 'telegram' }),
  });
  expect(answer.status).toBe(200);
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- the contract's tests look at its shape
  return (await answer.json()) as Written;
}

/** A tenant with three conversations, Ann's the last one, and a browser of its owner. */
async function begin(): Promise<void> {
  tenants += 1;
  keys = await system.createTenant(`inbox-${String(tenants)}`);
  const { contacts } = await system.scope(keys.tenantId);
  await write('cid', 'Do you ship to Norway?');
  await write('bob', 'Where is my parcel? [[say:It is **on its way**.]]');
  await write('ann', 'Is the shop open?');
  await contacts.remember({ sender: 'ann', displayName: 'Ann Lee' });
  await contacts.remember({ sender: 'bob', displayName: 'Bob Ray' });
  await using visit = await BrowserVisit.begin(browser, url);
  await visit.goTo('/inbox');
  await visit.page.getByLabel('API key').fill(keys.admin);
  await visit.page.getByRole('button', { name: 'Sign in' }).click();
  await visit.shows(list(visit.page));
  signedIn = await visit.keepCookies();
}

const list = (page: Page): Locator => page.getByRole('navigation', { name: 'Conversations' });
const row = (page: Page, name: RegExp): Locator => list(page).getByRole('link', { name });
const messages = (page: Page): Locator => page.getByRole('log', { name: 'Messages' });
const contact = (page: Page): Locator => page.getByRole('region', { name: 'Contact' });
const answer = (page: Page): Locator => page.getByLabel('Answer as staff');

async function visit(path: string, options: BrowserContextOptions = {}): Promise<BrowserVisit> {
  const visiting = await BrowserVisit.begin(browser, url, { ...options, ...signedIn });
  await visiting.goTo(path);
  return visiting;
}

inBrowser('the inbox', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack, { uis: 1 }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
    url = system.uiUrls[0] ?? '';
  });

  it('says nothing of who has a conversation, and offers nothing, before it knows', async () => {
    await begin();
    await using visiting = await BrowserVisit.begin(browser, url, signedIn);
    const { page } = visiting;
    // What the feed tells first has all of it asked again, without a press of a button.
    await page.route('**/api/feed', () => undefined);
    await visiting.goTo('/inbox');
    const answered = gate();
    let isRefused = true;
    await page.route(/\/api\/sessions\/[^/]+\/(?:handoff|staff)$/u, async (route) => {
      await answered.opened;
      if (isRefused) await route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"code":"internal"}' });
      else await route.continue();
    });
    await row(page, /^Ann Lee/u).click();
    await visiting.shows(contact(page).getByText('Loading …'));
    await visiting.shows(messages(page).getByText('Is the shop open?'));
    const unknown = [page.getByText('Nobody in particular.'), page.getByText('The agent answers here.'), page.getByText('Take over')];
    const countUnknown = async (): Promise<number[]> => Promise.all(unknown.map(async (said) => said.count()));
    expect(await countUnknown()).toEqual([0, 0, 0]);
    answered.open();
    await expectShown(contact(page).getByRole('alert'));
    expect(await countUnknown()).toEqual([0, 0, 0]);
    isRefused = false;
    await contact(page).getByRole('button', { name: 'Try again' }).click();
    await visiting.shows(contact(page).getByText('Nobody in particular.'));
    await page.getByRole('alert').getByRole('button', { name: 'Try again' }).click();
    await visiting.shows(page.getByRole('button', { name: 'Take over' }));
    expect(visiting.complaints.texts).toEqual([]);
  });

  it('marks what this browser has not shown yet, in every tab, until it is looked at', async () => {
    await begin();
    await using visiting = await visit('/inbox', onPhone);
    const { page } = visiting;
    await visiting.shows(row(page, /^Bob Ray/u));
    const tab = await visiting.openTab('/inbox');
    const marked = (of: Page): Locator => list(of).getByRole('link', { name: / new /u });
    expect(await marked(page).count()).toBe(0);
    await write('bob', 'Are you there?');
    await visiting.shows(row(page, /^Bob Ray new /u));
    await expectSoundPage(page);
    await expectShown(row(tab, /^Bob Ray new /u));
    expect(await marked(page).count()).toBe(1);
    await row(page, /^Bob Ray/u).click();
    await visiting.shows(messages(page).getByText('Are you there?'));
    await page.getByRole('link', { name: 'Back to the list' }).click();
    await visiting.shows(row(page, /^Bob Ray/u));
    await eventuallyHolds(async () => expect([await marked(page).count(), await marked(tab).count()]).toEqual([0, 0]));
    await page.reload();
    await visiting.shows(row(page, /^Bob Ray/u));
    expect(await marked(page).count()).toBe(0);
    expect(visiting.complaints.texts).toEqual([]);
  });

  it('is worked through with the keyboard: the next one, taken over, answered, given back', async () => {
    await begin();
    await using visiting = await visit('/inbox');
    const { page } = visiting;
    await visiting.shows(row(page, /^Ann Lee/u));
    // Of what the agent has written, the words alone.
    await visiting.shows(row(page, /^Bob Ray.*It is on its way\./u));
    await page.keyboard.press('j');
    await visiting.shows(messages(page).getByText('Is the shop open?'));
    await page.keyboard.press('j');
    await visiting.shows(messages(page).getByText('Where is my parcel?'));
    await page.keyboard.press('k');
    await visiting.shows(messages(page).getByText('Is the shop open?'));
    await page.keyboard.press('j');
    await visiting.shows(messages(page).getByText('on its way', { exact: true }));

    await page.keyboard.press('r');
    await eventuallyHolds(async () =>
      expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Answer as staff'),
    );
    await visiting.shows(row(page, /^Bob Ray.*waiting/u));
    // In the field they are letters.
    await page.keyboard.type('jerk: it comes on Monday.');
    await expectSoundPage(page);
    await keepPicture(page, 'inbox');
    await page.keyboard.press('Enter');
    await visiting.shows(messages(page).getByText('jerk: it comes on Monday.'));
    await visiting.shows(row(page, /^Bob Ray.*Staff: jerk/u));

    // Without a reload: what the contact writes meanwhile.
    expect(await write('bob', 'Thank you [[say:The agent speaks.]]')).toMatchObject({ reply: '' });
    await visiting.shows(messages(page).getByText('Thank you'));
    await page.getByRole('heading', { level: 2, name: 'Bob Ray' }).first().click();
    // Not before all lists have heard that it was taken over.
    await visiting.shows(page.getByRole('button', { name: 'Give back', disabled: false }));
    await page.keyboard.press('e');
    await answer(page).waitFor({ state: 'hidden' });
    expect(await write('bob', 'And now? [[say:The agent speaks.]]')).toMatchObject({ reply: 'The agent speaks.' });
    await visiting.shows(messages(page).getByText('The agent speaks.', { exact: true }));
    // The next one that is opened is not taken over by the key that was pressed before.
    await page.keyboard.press('j');
    await visiting.shows(messages(page).getByText(/Ann|open|Norway/u));
    await visiting.shows(page.getByRole('button', { name: 'Take over' }));
  });

  it('takes a conversation over once for a key that is pressed, and gives its field the focus once', async () => {
    await begin();
    await using visiting = await visit('/inbox');
    const { page } = visiting;
    await row(page, /^Bob Ray/u).click();
    await visiting.shows(messages(page).getByText('Where is my parcel?'));
    await visiting.shows(page.getByRole('button', { name: 'Take over' }));
    await page.keyboard.press('r');
    await visiting.shows(answer(page));
    await page.getByRole('button', { name: 'Give back' }).click();
    await answer(page).waitFor({ state: 'hidden' });
    // A colleague takes it over later: what this one does meanwhile is not for the field.
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    const asked = { method: 'POST', headers: { 'x-api-key': keys.admin, 'content-type': 'application/json' } };
    const handoff = `${system.url}/api/sessions/${id}`;
    expect((await fetch(`${handoff}/handoff`, { ...asked, body: '{"notify":false}' })).ok).toBe(true);
    await visiting.shows(answer(page));
    await visiting.shows(page.getByRole('button', { name: 'Give back' }));
    expect(await answer(page).evaluate((field) => field === field.ownerDocument.activeElement)).toBe(false);
    expect((await fetch(`${handoff}/resume`, { ...asked, body: '{}' })).ok).toBe(true);
    await answer(page).waitFor({ state: 'hidden' });

    const taken: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().endsWith('/handoff')) taken.push(request.url());
    });
    await row(page, /^Ann Lee/u).click();
    await visiting.shows(messages(page).getByText('Is the shop open?'));
    await row(page, /^Bob Ray/u).click();
    await visiting.shows(messages(page).getByText('Where is my parcel?'));
    await visiting.shows(page.getByText(/^The agent answers here/u));
    expect(taken).toEqual([]);
  });

  it('shows the agent’s reply as it comes, with its tools, also after a reload in the middle of it', async () => {
    await begin();
    await using visiting = await visit('/inbox');
    const { page } = visiting;
    await row(page, /^Ann Lee/u).click();
    await visiting.shows(messages(page).getByText('Is the shop open?'));
    const [more, rest] = [gate(), gate()];
    model.when(
      /slowly/u,
      [say('Let me look. '), callTools([{ name: 'memory_search', args: { query: 'opening hours' } }])],
      [say('We open'), until(more.opened), say(' at nine'), until(rest.opened), say(' on **Mondays**.')],
    );
    const answered = write('ann', 'Tell me slowly');
    await visiting.shows(messages(page).getByText('Tell me slowly'));
    await visiting.shows(messages(page).getByText('Let me look.'));
    await visiting.shows(messages(page).getByText('We open', { exact: true }));
    await visiting.shows(messages(page).getByText('Search the memory'));
    await expectSoundPage(page);
    more.open();
    await visiting.shows(messages(page).getByText('We open at nine', { exact: true }));
    await page.reload();
    await visiting.shows(messages(page).getByText('We open at nine', { exact: true }));
    expect(await messages(page).getByText('Tell me slowly').count()).toBe(1);
    rest.open();
    expect(await answered).toMatchObject({ reply: 'Let me look. We open at nine on **Mondays**.' });
    await visiting.shows(messages(page).getByText('We open at nine on Mondays.'));
    // Stored now, and shown once.
    await eventuallyHolds(async () => expect(await messages(page).locator('[aria-busy=true]').count()).toBe(0));
    expect(await messages(page).getByText('Tell me slowly').count()).toBe(1);
    expect(
      await messages(page)
        .getByText(/We open at nine/u)
        .count(),
    ).toBe(1);
  });

  it('says of a message that waits why it does', async () => {
    await begin();
    await using visiting = await visit('/inbox');
    const { page } = visiting;
    await row(page, /^Ann Lee/u).click();
    await visiting.shows(messages(page).getByText('Is the shop open?'));
    const rest = gate();
    model.when(/slowly/u, [say('We open'), until(rest.opened), say(' at nine.')]);
    const answered = [write('ann', 'Tell me slowly')];
    await visiting.shows(messages(page).getByText('We open', { exact: true }));
    answered.push(write('ann', 'And on Sundays?'));
    await visiting.shows(messages(page).getByText('It waits behind another turn of its conversation, which runs.'));
    rest.open();
    await Promise.all(answered);
    await eventuallyHolds(async () => expect(await messages(page).getByText('It waits').count()).toBe(0));
    expect(visiting.complaints.texts).toEqual([]);
  });

  it('tells visitors without a name from one another by a few digits', async () => {
    await begin();
    await write(`visitor:${'3fa9c2'.padEnd(64, '0')}`, 'Is anybody there?');
    await using visiting = await visit('/inbox');
    await row(visiting.page, /^Visitor 3fa9c2(?!0)/u).click();
    await visiting.shows(visiting.page.getByRole('heading', { name: 'Visitor 3fa9c2', exact: true }).first());
    expect(visiting.complaints.texts).toEqual([]);
  });

  it('finds conversations by name, and shows one pane at a time on a phone', async () => {
    await begin();
    await using visiting = await visit('/inbox', onPhone);
    const { page } = visiting;
    await page.getByRole('searchbox', { name: 'Search conversations' }).fill('bob r');
    await page.keyboard.press('Enter');
    await row(page, /^Ann Lee/u).waitFor({ state: 'hidden' });
    await expectSoundPage(page);
    await row(page, /^Bob Ray/u).click();
    await visiting.shows(messages(page).getByText('Where is my parcel?'));
    expect(await list(page).isVisible()).toBe(false);
    await expectSoundPage(page);
    await keepPicture(page, 'inbox-phone');
    await page.getByRole('button', { name: 'Contact' }).click();
    await visiting.shows(contact(page).getByRole('heading', { name: 'Bob Ray' }));
    expect(await messages(page).isVisible()).toBe(false);
    await expectSoundPage(page);
    await page.getByRole('button', { name: 'Back to the conversation' }).click();
    await page.getByRole('link', { name: 'Back to the list' }).click();
    await visiting.shows(row(page, /^Bob Ray/u));
    await page.getByRole('searchbox').fill('nobody at all');
    await page.keyboard.press('Enter');
    await visiting.shows(page.getByText('No conversation fits'));
    await page.getByRole('searchbox').fill('');
    await visiting.shows(row(page, /^Ann Lee/u));
    await page.getByText('Waiting', { exact: true }).click();
    await visiting.shows(page.getByText('Nothing waits for staff'));
  });

  it('shows who a conversation is with, and erases the contact after asking', async () => {
    await begin();
    const scope = await system.scope(keys.tenantId);
    await scope.memory.forContact('ann').write({ text: 'Likes green tea.' });
    await scope.contacts.addAlias({ channel: 'channel_c', alias: '777', sender: 'ann' });
    await using visiting = await visit('/inbox', { colorScheme: 'dark' });
    const { page } = visiting;
    await row(page, /^Ann Lee/u).click();
    await visiting.shows(contact(page).getByText('777 (Telegram)'));
    await visiting.shows(contact(page).getByText('at any time'));
    await contact(page).getByText('MEMORY.md').click();
    await visiting.shows(contact(page).getByText('Likes green tea.'));
    await expectSoundPage(page);
    await page.getByRole('button', { name: 'Erase the contact' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Erase the contact' }).click();
    await row(page, /^Ann Lee/u).waitFor({ state: 'hidden' });
    expect(visiting.complaints.texts).toEqual([]);
  });

  it('shows who a conversation is with, what staff noted, and who has it', async () => {
    await begin();
    const { files } = await system.scope(keys.tenantId);
    await files.writeText('answers/hours.md', 'We open at nine.');
    await files.writeText('answers/refund.md', 'Your refund is on its way.');
    await using visiting = await visit('/inbox');
    const { page } = visiting;
    await page.getByText('Mine', { exact: true }).click();
    await visiting.shows(page.getByText('Nothing is assigned to you'));
    await page.getByText('All', { exact: true }).click();
    await row(page, /^Ann Lee/u).click();
    await contact(page).getByLabel('Your name').fill('Zoë');
    await contact(page).getByRole('button', { name: 'Assign to me' }).click();
    await visiting.shows(row(page, /^Ann Lee.*Zoë/u));
    await page.getByText('Mine', { exact: true }).click();
    await row(page, /^Bob Ray/u).waitFor({ state: 'hidden' });

    // While the agent has it, only notes are written.
    await page.getByLabel('Note for staff').fill('She is a wholesaler: ask for her order number');
    await page.keyboard.press('Enter');
    await visiting.shows(messages(page).getByText('She is a wholesaler: ask for her order number'));
    await visiting.shows(messages(page).getByText('Note of Zoë'));
    await expectSoundPage(page);
    await write('ann', 'And tomorrow?');
    expect(JSON.stringify(model.requests)).toContain('And tomorrow?');
    expect(JSON.stringify(model.requests)).not.toContain('wholesaler');

    await page.getByRole('button', { name: 'Take over' }).click();
    await answer(page).pressSequentially('/re');
    await visiting.shows(page.getByRole('option', { name: /refund/u }));
    expect(await page.getByRole('listbox').getByRole('option').count()).toBe(1);
    await expectSoundPage(page);
    await keepPicture(page, 'inbox-answers');
    await page.keyboard.press('Enter');
    expect(await answer(page).inputValue()).toBe('Your refund is on its way.');
    await page.keyboard.press('Enter');
    await visiting.shows(messages(page).getByText('Your refund is on its way.'));
    await answer(page).fill('/nothing like it');
    await visiting.shows(page.getByText('No saved answer fits.'));
    await page.getByRole('button', { name: 'Delete the note' }).click();
    await messages(page).getByText('She is a wholesaler: ask for her order number').waitFor({ state: 'hidden' });
    await contact(page).getByRole('button', { name: 'Take away' }).click();
    await visiting.shows(page.getByText('Nothing is assigned to you'));
  });

  it('tells of a conversation that waits once, while no tab is looked at, and counts it in the title', async () => {
    await begin();
    await using visiting = await visit('/inbox', { permissions: ['notifications'] });
    const { page } = visiting;
    // What the browser would show, and whether somebody looks: a headless one has no screen.
    await page.addInitScript(`
      globalThis.shown = [];
      globalThis.Notification = class extends EventTarget {
        static permission = 'granted';
        static requestPermission = async () => 'granted';
        constructor(title, { body, tag }) { super(); globalThis.shown.push({ title, body, tag }); }
        close() {}
      };
      globalThis.look = (state) => {
        Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      };`);
    await page.reload();
    await page.getByLabel(/^Tell me when/u).check();
    const shown = async (): Promise<unknown> => page.evaluate('globalThis.shown');
    const callForStaff = async (sender: string): Promise<string> => {
      const call = `[[tools:handoff {"action":"request","reason":"Refund for ${sender}"}]] [[say:A colleague will answer.]]`;
      return (await write(sender, `Help! ${call}`)).contact_id;
    };
    // While the tab is looked at the list is enough.
    await callForStaff('ann');
    await visiting.shows(row(page, /^Ann Lee.*waiting/u));
    await eventuallyHolds(async () => expect(await page.title()).toBe('(1) Inbox · Concierge'));
    // Noted as looked at, while it was.
    await eventuallyHolds(async () => expect(await page.evaluate("localStorage.getItem('concierge.notified')")).toMatch(/^\["[^",]+"\]$/u));
    await page.evaluate('globalThis.look("hidden")');
    const tag = await callForStaff('bob');
    const told = [{ title: 'Waits for staff: Where is my parcel? [[say:It is **on its way**.]]', body: 'Refund for bob', tag }];
    await eventuallyHolds(async () => expect(await shown()).toEqual(told));
    await eventuallyHolds(async () => expect(await page.title()).toBe('(2) Inbox · Concierge'));
    // Another change of the list tells nothing anew.
    await callForStaff('cid');
    await eventuallyHolds(async () => expect(await page.title()).toBe('(3) Inbox · Concierge'));
    // It is told of after the title has changed.
    await eventuallyHolds(async () => expect(await shown()).toHaveLength(2));
    const given = { method: 'POST', headers: { 'x-api-key': keys.admin, 'content-type': 'application/json' }, body: '{}' };
    expect((await fetch(`${system.url}/api/sessions/${tag}/resume`, given)).status).toBe(200);
    await eventuallyHolds(async () => expect(await page.title()).toBe('(2) Inbox · Concierge'));
    expect(await shown()).toHaveLength(2);
    // Another tab that is looked at is enough, too.
    const other = await visiting.openTab('/inbox');
    await expectShown(list(other));
    await callForStaff('bob');
    await eventuallyHolds(async () => expect(await page.title()).toBe('(3) Inbox · Concierge'));
    expect(await shown()).toHaveLength(2);
  });

  it('says what is wrong with an address, and speaks German', async () => {
    await begin();
    await using visiting = await visit(`/inbox/${'f'.repeat(32)}`, { locale: 'de-DE' });
    const { page } = visiting;
    await visiting.shows(page.getByRole('alert').first());
    await expectSoundPage(page);
    await page.getByRole('link', { name: /^Ann Lee/u }).click();
    await visiting.shows(page.getByRole('button', { name: 'Übernehmen' }));
    expect(visiting.complaints.texts).toEqual([]);
  });
});
