import { describe, expect, it } from '@jest/globals';
import { gate, startScriptedSystem, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { ConsolePage } from './console-page.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { expectSoundPage } from './page-checks.ts';

let system: System;
let browser: Browser;
let keys: TenantKeys;
let tenants = 0;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

/** A customer writes, from wherever they are. */
async function write(message: string): Promise<{ readonly reply: string; readonly contact_id: string }> {
  const response = await fetch(`${system.url}/api/cs`, {
    method: 'POST',
    headers: { 'x-api-key': keys.cs, 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ message, sender: 'bob', channel: 'telegram' }),
  });
  expect(response.status).toBe(200);
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- the contract's tests look at its shape
  return (await response.json()) as { reply: string; contact_id: string };
}

async function visitWith(): Promise<ConsolePage> {
  tenants += 1;
  keys = await system.createTenant(`handoff-${String(tenants)}`);
  await write('Where is my parcel? [[say:On its way.]]');
  const visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '');
  await visit.enter(keys.admin);
  return visit;
}

const banner = ({ page }: ConsolePage) => page.getByRole('region', { name: 'Handed over' });
const waiting = ({ page }: ConsolePage) => page.getByRole('region', { name: 'Waiting for a person' });
const answer = ({ page }: ConsolePage) => page.getByLabel('Answer as a person');

inBrowser('a handover in the console', () => {
  setUpOnce(async (stack) => {
    ({ system } = await startScriptedSystem(stack, { uis: 1 }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
  });

  it('lets staff take a conversation over, answer in the agent’s place, and give it back', async () => {
    await using visit = await visitWith();
    await visit.page.getByRole('link', { name: /^Where is my parcel/u }).click();
    await visit.turnReaches(0, 'done');
    await visit.page.getByRole('button', { name: 'Take over' }).click();
    await visit.shows(banner(visit));
    await visit.shows(answer(visit));
    await eventuallyHolds(async () => expect(await visit.page.getByLabel('Message', { exact: true }).count()).toBe(0));
    await visit.shows(waiting(visit).getByText('Where is my parcel?'));

    // Without a reload: what the contact writes in the meantime, which no agent answers.
    expect(await write('Hello? [[say:The agent speaks.]]')).toMatchObject({ reply: '' });
    await visit.shows(visit.turn(1).getByText('Hello?'));

    await answer(visit).fill('Anna here: it comes on Monday.');
    await visit.page.keyboard.press('Enter');
    await visit.shows(visit.turn(2).getByText('Anna here: it comes on Monday.'));
    await visit.shows(visit.turn(2).getByText('A person, in the agent’s place'));
    await eventuallyHolds(async () => expect(await answer(visit).inputValue()).toBe(''));

    await visit.page.reload();
    await visit.shows(visit.turn(2).getByText('A person, in the agent’s place'));
    await visit.shows(banner(visit));
    await expectSoundPage(visit.page);
    await visit.page.getByRole('button', { name: 'Give back to the agent' }).click();
    await banner(visit).waitFor({ state: 'hidden' });
    await waiting(visit).waitFor({ state: 'hidden' });
    await visit.shows(visit.page.getByLabel('Message', { exact: true }));
    expect(await write('And now? [[say:The agent speaks.]]')).toMatchObject({ reply: 'The agent speaks.' });
  });

  it('shows by itself that an agent has asked for staff, and why', async () => {
    await using visit = await visitWith();
    await eventuallyHolds(async () => expect(await waiting(visit).count()).toBe(0));
    await write('Refund! [[tools:handoff {"action":"request","reason":"Wants a refund of 40 euros."}]] [[say:A colleague will answer.]]');
    await visit.shows(waiting(visit).getByText('Where is my parcel?'));
    await visit.shows(visit.page.getByRole('img', { name: 'Waits for a person' }));
    await waiting(visit).getByRole('link').click();
    await visit.shows(banner(visit).getByText('Wants a refund of 40 euros.'));
  });

  it('takes the focus from no other field when an answer is accepted', async () => {
    await using visit = await visitWith();
    const { page } = visit;
    const [asked, accepted] = [gate(), gate()];
    await page.route('**/api/sessions/*/messages', async (route) => {
      asked.open();
      await accepted.opened;
      await route.continue();
    });
    await page.getByRole('link', { name: /^Where is my parcel/u }).click();
    await page.getByRole('button', { name: 'Take over' }).click();
    await answer(visit).fill('It comes on Monday.');
    await answer(visit).press('Enter');
    await asked.opened;
    const search = page.getByRole('searchbox', { name: 'Search conversations' });
    await search.fill('Where');
    accepted.open();
    await eventuallyHolds(async () => expect(await answer(visit).inputValue()).toBe(''));
    await page.keyboard.type(' is');
    expect(await search.inputValue()).toBe('Where is');
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('shows that an answer was not sent, and keeps it, when the agent has the conversation again', async () => {
    await using visit = await visitWith();
    let hears = true;
    await visit.page.route('**/handoff', async (route) => {
      const response = await route.fetch();
      if (hears) await route.fulfill({ response });
      else await route.abort();
    });
    await visit.page.getByRole('link', { name: /^Where is my parcel/u }).click();
    await visit.page.getByRole('button', { name: 'Take over' }).click();
    await visit.shows(answer(visit));
    // The page does not hear that the agent has it again, not even by what it has asked before.
    hears = false;
    const { handoffs, index } = await system.scope(keys.tenantId);
    const [session] = (await index.listSessions({ limit: 1, agent: 'cs' })).items;
    await handoffs.resume(session?.id ?? '', { kind: 'operator' });
    await answer(visit).fill('Too late.');
    await visit.page.keyboard.press('Enter');
    await visit.shows(visit.page.getByRole('alert').getByText('Not sent.'));
    expect(await answer(visit).inputValue()).toBe('Too late.');
    const said = (await (await system.scope(keys.tenantId)).sessions.view(session?.id ?? ''))?.messages ?? [];
    expect(JSON.stringify(said)).not.toContain('Too late.');
    await visit.page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('leaves what is written in the inbox what it was begun as, when the conversation changes hands meanwhile', async () => {
    await using visit = await visitWith();
    const { page } = visit;
    await page.goto(`${system.uiUrls[0] ?? ''}/inbox`);
    await page.getByRole('navigation', { name: 'Conversations' }).getByRole('link').first().click();
    const [note, reply] = [page.getByLabel('Note for staff'), page.getByLabel('Answer as staff')];
    const withStaff = page.getByText('Staff has this conversation.');
    await visit.shows(page.getByText(/^The agent answers here/u));
    await note.fill('He always complains.');
    const call = '[[tools:handoff {"action":"request","reason":"Wants a refund."}]] [[say:A colleague will answer.]]';
    const { contact_id: id } = await write(`Refund! ${call}`);
    await visit.shows(withStaff);
    expect([await note.count(), await reply.count()]).toEqual([1, 0]);
    await page.keyboard.press('Enter');
    await visit.shows(page.getByRole('log', { name: 'Messages' }).getByText('He always complains.'));

    // The next one is an answer, and no note when the agent has the conversation again.
    await reply.fill('Dear Bob, ');
    const given = { method: 'POST', headers: { 'x-api-key': keys.admin, 'content-type': 'application/json' }, body: '{}' };
    expect((await fetch(`${system.url}/api/sessions/${id}/resume`, given)).status).toBe(200);
    await withStaff.waitFor({ state: 'hidden' });
    expect([await note.count(), await reply.inputValue()]).toEqual([0, 'Dear Bob, ']);
    await visit.shows(page.getByText('The agent has it again: take it over to send this'));
    expect(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled()).toBe(true);
    await expectSoundPage(page);
    await page.getByText('Note', { exact: true }).click();
    expect(await note.inputValue()).toBe('Dear Bob, ');
    await note.fill('');
    await page.getByRole('button', { name: 'Take over' }).click();
    await page.getByText('Answer', { exact: true }).click();
    await reply.fill('It is on its way.');
    await page.keyboard.press('Enter');
    const { sessions } = await system.scope(keys.tenantId);
    const readSaid = async (): Promise<string> => JSON.stringify((await sessions.view(id))?.messages);
    await eventuallyHolds(async () => expect(await readSaid()).toContain('It is on its way.'));
    expect(await readSaid()).not.toContain('complains');
  });

  it('sends nothing that asks for a saved answer before these are there', async () => {
    await using visit = await visitWith();
    const { page } = visit;
    const { files } = await system.scope(keys.tenantId);
    await files.writeText('answers/refund.md', 'Your refund is on its way.');
    const there = Promise.withResolvers<null>();
    await page.route(/\/api\/answers$/u, async (route) => {
      await there.promise;
      await route.continue();
    });
    await page.goto(`${system.uiUrls[0] ?? ''}/inbox`);
    await page.getByRole('navigation', { name: 'Conversations' }).getByRole('link').first().click();
    await page.getByRole('button', { name: 'Take over' }).click();
    const reply = page.getByLabel('Answer as staff');
    await reply.fill('/re');
    await reply.press('ArrowDown');
    await reply.press('Enter');
    there.resolve(null);
    await visit.shows(page.getByRole('option', { name: /refund/u }));
    expect(await reply.inputValue()).toBe('/re');
    await reply.press('Enter');
    await eventuallyHolds(async () => expect(await reply.inputValue()).toBe('Your refund is on its way.'));
  });

  it('keeps an answer that is not sent while a colleague gives the conversation back, until it is taken over again', async () => {
    await using visit = await visitWith();
    await visit.page.getByRole('link', { name: /^Where is my parcel/u }).click();
    await visit.page.getByRole('button', { name: 'Take over' }).click();
    await answer(visit).fill('Anna here: it comes on Monday.');
    const { index, sessions } = await system.scope(keys.tenantId);
    const [session] = (await index.listSessions({ limit: 1, agent: 'cs' })).items;
    const id = session?.id ?? '';
    await fetch(`${system.url}/api/sessions/${id}/resume`, { method: 'POST', headers: { 'x-api-key': keys.admin } });
    const message = visit.page.getByLabel('Message', { exact: true });
    await visit.shows(message);
    // Nor do its next letters go there.
    await visit.page.keyboard.type(' Ask for Anna.');
    expect(await message.inputValue()).toBe('');
    // It can be read and copied, and does not stand where it would be sent as something else.
    const unsent = visit.page.getByRole('region', { name: 'Answer that was not sent' });
    await visit.shows(unsent.getByText('Anna here: it comes on Monday.'));
    await visit.shows(unsent.getByRole('button', { name: 'Copy the answer' }));
    expect(await message.inputValue()).toBe('');
    await expectSoundPage(visit.page);
    await visit.page.getByRole('button', { name: 'Take over' }).click();
    await eventuallyHolds(async () => expect(await answer(visit).inputValue()).toBe('Anna here: it comes on Monday.'));
    expect(await unsent.count()).toBe(0);
    await answer(visit).press('Enter');
    await visit.shows(visit.turn(1).getByText('A person, in the agent’s place'));
    // It stands there as soon as it is accepted, and is stored when its turn has ended.
    await visit.turnReaches(1, 'done');
    expect(JSON.stringify((await sessions.view(id))?.messages).split('it comes on Monday').length).toBe(2);
    await answer(visit).fill('Not meant to go.');
    await visit.page.getByRole('button', { name: 'Give back to the agent' }).click();
    await unsent.getByRole('button', { name: 'Discard the answer' }).click();
    await unsent.waitFor({ state: 'detached' });
    await visit.page.getByRole('button', { name: 'Take over' }).click();
    await visit.shows(answer(visit));
    expect(await answer(visit).inputValue()).toBe('');
  });

  it('keeps what was being written to the agent, with its file, until the agent has the conversation again', async () => {
    await using visit = await visitWith();
    const message = visit.page.getByLabel('Message', { exact: true });
    await visit.page.getByText('Customer', { exact: true }).click();
    await visit.say('When does it come? [[say:On Monday.]]');
    await visit.turnReaches(0, 'done');
    await visit.page
      .locator('input[type=file]')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('from the file') });
    await message.fill('And this one? [[say:On Friday.]]');
    await visit.page.getByRole('button', { name: 'Take over' }).click();
    await visit.shows(answer(visit));
    // It is not where it would be sent as something else.
    expect([await answer(visit).inputValue(), await message.count()]).toEqual(['', 0]);
    await visit.shows(visit.page.getByText('Your message to the agent is kept'));
    await expectSoundPage(visit.page);
    await answer(visit).fill('Anna here: on Tuesday.');
    await visit.page.keyboard.press('Enter');
    await visit.turnReaches(1, 'done');
    await visit.page.getByRole('button', { name: 'Give back to the agent' }).click();
    await visit.shows(message);
    expect(await message.inputValue()).toBe('And this one? [[say:On Friday.]]');
    await visit.shows(visit.page.locator('form').getByText('notes.txt'));
    await message.press('Enter');
    await visit.turnReaches(2, 'done');
    await visit.shows(visit.turn(2).getByText('notes.txt'));
    await visit.shows(visit.turn(2).getByText('On Friday.', { exact: true }));
  });

  it('leaves what staff was writing to be copied when the key is revoked meanwhile', async () => {
    await using visit = await visitWith();
    const { page } = visit;
    await page.goto(`${system.uiUrls[0] ?? ''}/inbox`);
    await page.getByRole('navigation', { name: 'Conversations' }).getByRole('link').first().click();
    await page.getByLabel('Note for staff').fill('worth keeping');
    const scope = await system.scope(keys.tenantId);
    for (const { id } of await scope.keys.list()) await scope.keys.revoke(id);
    const ask = async (): Promise<number> => (await fetch(`${system.url}/api/whoami`, { headers: { 'x-api-key': keys.admin } })).status;
    await eventuallyHolds(async () => expect(await ask()).toBe(401));
    await page.keyboard.press('Enter');
    await visit.shows(page.getByLabel('API key'));
    const unsent = page.getByRole('region', { name: 'What you wrote was not sent' });
    await visit.shows(unsent.getByText('worth keeping', { exact: true }));
  });

  it('takes the focus from no other field when the agent has the conversation again', async () => {
    await using visit = await visitWith();
    await visit.page.getByText('Customer', { exact: true }).click();
    await visit.say('When does it come? [[say:On Monday.]]');
    await visit.turnReaches(0, 'done');
    await visit.page.getByRole('button', { name: 'Take over' }).click();
    await visit.shows(answer(visit));
    const search = visit.page.getByRole('searchbox', { name: 'Search conversations' });
    await search.fill('When does');
    // By its address: the index may be behind.
    const id = new URL(visit.page.url()).pathname.split('/').at(-1) ?? '';
    const given = { method: 'POST', headers: { 'x-api-key': keys.admin } };
    expect((await fetch(`${system.url}/api/sessions/${id}/resume`, given)).status).toBe(200);
    await visit.shows(visit.page.getByLabel('Message', { exact: true }));
    await visit.page.keyboard.type(' it');
    expect(await search.inputValue()).toBe('When does it');
  });

  it('is looked at when the browser is online again, as changes may have been missed', async () => {
    await using visit = await visitWith();
    const { page } = visit;
    await page.route(/\/api\/feed$/u, () => undefined);
    await page.reload();
    await page.getByRole('link', { name: /^Where is my parcel/u }).click();
    await visit.shows(page.getByRole('button', { name: 'Take over' }));
    // Sooner than the page looks by the clock.
    const asked = page.waitForRequest(/\/handoff$/u, { timeout: 50_000 });
    await page.evaluate("dispatchEvent(new Event('offline')); dispatchEvent(new Event('online'))");
    expect((await asked).method()).toBe('GET');
  });
});
