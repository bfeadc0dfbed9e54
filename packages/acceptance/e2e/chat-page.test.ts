import { describe, expect, it } from '@jest/globals';
import {
  callTools,
  gate,
  say,
  startScriptedSystem,
  status,
  until,
  type System,
  type ScriptedModel,
  type TenantKeys,
} from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { ConsolePage } from './console-page.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { expectSoundPage } from './page-checks.ts';

let model: ScriptedModel;
let system: System;
let browser: Browser;
let keys: TenantKeys;
let tenants = 0;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

/** A visit with a tenant of its own. */
async function visitWith(options: BrowserContextOptions = {}): Promise<ConsolePage> {
  tenants += 1;
  keys = await system.createTenant(`tenant-${String(tenants)}`);
  const visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '', options);
  await visit.enter(keys.admin);
  return visit;
}

const numbers = Array.from({ length: 40 }, (_, index) => `n${String(index)}`).join(' ');

/** The reply to a question is all of the numbers, and waits after the first ones until the gate is opened. */
function holdReply(question: string): ReturnType<typeof gate<void>> {
  const goOn = gate();
  const half = numbers.indexOf('n20');
  model.when(question, [say(numbers.slice(0, half)), until(goOn.opened), say(numbers.slice(half), { chunks: 20, delayMs: 20 })]);
  return goOn;
}

/** What would run, ask elsewhere, or change the page, were it taken for more than text. */
const hostile = [
  '<script>globalThis.owned = 1</script>',
  '<iframe src="https://evil.example/f"></iframe><object data="https://evil.example/o"></object>',
  '<form action="https://evil.example/"><input name="key"><button>Go</button></form>',
  '<style>article { display: none }</style><link rel="stylesheet" href="https://evil.example/s.css">',
  '<svg onload="globalThis.owned = 1"><use href="https://evil.example/u.svg#x"></use></svg>',
  '<img src="x" onerror="globalThis.owned = 1"> ![p](https://evil.example/p.png) [go](javascript:globalThis.owned=1)',
  '<base href="https://evil.example/"><meta http-equiv="refresh" content="0; url=https://evil.example/">',
  '<video src="https://evil.example/v.mp4" autoplay></video><div style="position: fixed">over all</div>',
  '<div id="root">not the page</div>',
];

/** What of that has become part of the page, by its tags and attributes. */
const taken = `[
  ...document.querySelectorAll(':is(article, nav, header) :is(script, iframe, object, form, style, link, base, meta, img, video, audio, use)'),
  ...document.querySelectorAll('[onload], [onerror], article [style*=fixed], article #root, [href^="javascript:"]'),
  ...(globalThis.owned === undefined ? [] : [document.body]),
].map((node) => node.outerHTML.slice(0, 100))`;

const conversations = ({ page }: ConsolePage) => page.getByRole('navigation', { name: 'Conversations' });

inBrowser('the chat page', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack, { uis: 1 }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
  });

  it('says what is wrong with a wrong key, and keeps a right one from scripts, for all tabs until one signs out', async () => {
    await using visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '');
    await visit.signIn('ck_live_wrong');
    await eventuallyHolds(async () => expect(await visit.page.getByRole('alert').textContent()).toContain('API key is not valid'));
    keys = await system.createTenant('tenant-keys');
    await visit.signIn(keys.admin);
    await visit.page.getByText('No conversations yet').waitFor();
    for (const kept of ['localStorage', 'sessionStorage', 'document.cookie'])
      expect(await visit.page.evaluate(`JSON.stringify(${kept})`)).not.toContain('ck_live');
    const tab = await visit.openTab();
    await tab.getByText('No conversations yet').waitFor();
    await visit.page.getByRole('button', { name: 'Sign out' }).click();
    await visit.page.getByLabel('API key').waitFor();
    expect(await visit.page.evaluate('sessionStorage.length')).toBe(0);
    await tab.getByLabel('API key').waitFor();
  });

  it('keeps a key for one tab alone when it is asked to', async () => {
    keys = await system.createTenant('tenant-of-a-tab');
    await using visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '');
    await visit.page.getByLabel('Only in this tab').check();
    await visit.enter(keys.admin);
    await visit.page.reload();
    await visit.shows(visit.page.getByText('No conversations yet'));
    const tab = await visit.openTab();
    await tab.getByLabel('API key').waitFor();
    expect(visit.complaints.texts).toEqual([]);
  });

  it('lists a new conversation while its first reply comes', async () => {
    keys = await system.createTenant('tenant-with-a-first-reply');
    await using visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '');
    await visit.enter(keys.admin);
    await visit.shows(visit.page.getByText('No conversations yet'));
    const goOn = holdReply('Count for the list');
    await visit.say('Count for the list');
    await visit.shows(conversations(visit).getByRole('link', { name: /^Count for the list/u }));
    await visit.turnReaches(0, 'running');
    goOn.open();
    await visit.turnReaches(0, 'done');
    expect(visit.complaints.texts).toEqual([]);
  });

  it('streams a reply with its tool calls, and lists the conversation', async () => {
    await using visit = await visitWith();
    await visit.say('Who am I? [[say:Let me look.]]+[[tools:read {"path":"USER.md"}]] [[say:You are **known**.]]');
    await visit.turnReaches(0, 'done');
    const card = visit.turn(0).locator('[data-tool=read]');
    await eventuallyHolds(async () => expect(await card.getAttribute('data-status')).toBe('ok'));
    await visit.shows(card.locator('summary').getByText('Read a file', { exact: true }));
    await card.locator('summary').click();
    await visit.shows(card.getByText('Name for the model: read', { exact: true }));
    await eventuallyHolds(async () => expect(await card.getByLabel('Input', { exact: true }).textContent()).toContain('"path": "USER.md"'));
    expect(await card.getByLabel('Output', { exact: true }).textContent()).not.toBe('');
    await visit.turn(0).locator('[data-streamdown=strong]', { hasText: 'known' }).waitFor();
    await expectSoundPage(visit.page);
    const listed = conversations(visit).getByRole('link', { name: /^Who am I/u });
    await listed.waitFor();
    expect(await listed.locator('time').innerText()).not.toContain('in ');
  });

  it('goes on after a reload in mid-reply, without gap or repetition', async () => {
    await using visit = await visitWith();
    const goOn = holdReply('Count over a reload');
    await visit.say('Count over a reload');
    await visit.turn(0).getByText('n3').first().waitFor();
    await visit.page.reload();
    await visit.turn(0).getByText('n3').first().waitFor();
    goOn.open();
    await visit.turnReaches(0, 'done');
    await eventuallyHolds(async () => expect(await visit.turn(0).innerText()).toContain(numbers));
  });

  it('is there after a reload in the moment after sending, with its turn', async () => {
    await using visit = await visitWith();
    // The page is left after the service has accepted the message and before it could say so.
    const accepted = visit.page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/api/admin'));
    await visit.say('Quick [[say:one two|chunks=2|delay=1500]]');
    await accepted;
    await visit.page.reload();
    await visit.turnReaches(0, 'done');
    await visit.turn(0).getByText('one two', { exact: true }).waitFor();
    const { index } = await system.scope(keys.tenantId);
    await eventuallyHolds(async () => expect((await index.listSessions({ limit: 10 })).items).toMatchObject([{ messageCount: 2 }]));
  });

  it('reads replies as text when the renderer cannot be loaded, and works where the browser keeps nothing', async () => {
    tenants += 1;
    keys = await system.createTenant(`tenant-${String(tenants)}`);
    await using visit = await ConsolePage.open(browser, 'about:blank');
    await visit.page.addInitScript(() => {
      for (const name of ['localStorage', 'sessionStorage']) {
        Object.defineProperty(globalThis, name, {
          get: () => {
            throw new DOMException('blocked', 'SecurityError');
          },
        });
      }
    });
    await visit.page.route(/\/markdown-[^/]*\.js$/u, async (route) => route.abort());
    await visit.page.goto(`${system.uiUrls[0] ?? ''}/chat`);
    await visit.enter(keys.admin);
    await visit.say('Hello [[say:some **bold** words]]');
    await visit.turnReaches(0, 'done');
    await visit.shows(visit.turn(0).getByText('some **bold** words', { exact: true }));
    expect(visit.complaints.texts).toEqual([]);
  });

  it('goes on when the gateway is killed and comes back', async () => {
    await using visit = await visitWith();
    const goOn = holdReply('Count over a kill');
    await visit.say('Count over a kill');
    await visit.turn(0).getByText('n3').first().waitFor();
    await system.gateways[0]?.kill();
    await visit.turn(0).getByText('Reconnecting').waitFor();
    system.gateways[0]?.start();
    await system.ready();
    goOn.open();
    await visit.turnReaches(0, 'done');
    await eventuallyHolds(async () => expect(await visit.turn(0).innerText()).toContain(numbers));
  });

  it('queues what is sent while the agent is busy, and stops the running turn alone', async () => {
    await using visit = await visitWith();
    await visit.say('[[say:one two three]]+[[hang]]');
    await visit.turnReaches(0, 'running');
    await visit.say('second [[say:Second reply]]');
    await visit.turn(1).getByText('Waits its turn').waitFor();
    await visit.page.getByRole('button', { name: 'Stop' }).click();
    await visit.turn(0).getByText('Stopped.').waitFor();
    await visit.turnReaches(1, 'done');
    await eventuallyHolds(async () => expect(await visit.turn(0).innerText()).toContain('one two three'));
    await eventuallyHolds(async () => expect(await visit.turn(1).innerText()).toContain('Second reply'));
  });

  it('says of what waits why it does, and what would start it, in the list of turns and in German, too', async () => {
    await using visit = await visitWith();
    await visit.say('[[say:one two three]]+[[hang]]');
    await visit.turnReaches(0, 'running');
    await visit.say('second [[say:Second reply]]');
    await visit.shows(
      visit.turn(1).getByText('It waits behind another turn of its conversation, which runs. Starts when: That turn ends.'),
    );
    await expectSoundPage(visit.page);
    await visit.page.goto(`${system.uiUrls[0] ?? ''}/turns?status=waiting`);
    await visit.shows(visit.page.getByRole('cell', { name: /waiting It waits behind another turn of its conversation, which runs\./u }));
    await visit.page.getByLabel('Language').selectOption('de');
    await visit.shows(visit.page.getByText('Er wartet hinter einem anderen Turn seines Gesprächs, der läuft.'));
    await visit.page.goBack();
    await visit.page.getByRole('button', { name: 'Anhalten' }).click();
    await visit.turnReaches(1, 'done');
    expect(visit.complaints.texts).toEqual([]);
  });

  it('says why a turn failed, and asks again', async () => {
    await using visit = await visitWith();
    model.when(/Try this/u, [status(400)], [say('It worked')]);
    await visit.say('Try this');
    await visit.turnReaches(0, 'failed');
    await eventuallyHolds(async () => expect(await visit.turn(0).getByRole('alert').textContent()).toContain('provider'));
    await visit.page.getByRole('button', { name: 'Try again' }).click();
    await visit.turnReaches(1, 'done');
  });

  it('loads nothing that a model names, and says where its links lead', async () => {
    await using visit = await visitWith();
    await visit.say(
      '[[say:![pixel](https://evil.example/p.png) [our page](https://evil.example/x) <img src="https://evil.example/y.png">]]',
    );
    await visit.turnReaches(0, 'done');
    const link = visit.turn(0).getByRole('link', { name: /our page/u });
    await eventuallyHolds(async () => expect(await link.textContent()).toContain('evil.example'));
    expect(await visit.turn(0).getByRole('img').count()).toBe(0);
    expect(visit.foreignRequests).toEqual([]);
  });

  it('takes nothing for more than text, wherever it stands: in messages, titles, files, replies and all of a tool call', async () => {
    await using visit = await visitWith();
    const { page } = visit;
    const text = hostile.join('\n\n');
    const file = { method: 'PUT', headers: { 'x-api-key': keys.admin, 'content-type': 'text/plain' }, body: text };
    expect((await fetch(`${system.url}/api/files/memory/evil.md`, file)).status).toBeLessThan(300);
    const calls = hostile.map((payload) => ({ name: payload, args: { [payload]: payload, nested: { [payload]: [payload] } } }));
    const reads = { name: 'read', args: { path: 'memory/evil.md' } };
    model.when(/Hostile/u, [say(text), callTools([...calls, reads])], [say(text)]);
    const name = '<img src=x onerror=globalThis.owned=1>.txt';
    await page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
    await visit.say(`${text} Hostile`);
    await visit.turnReaches(0, 'done');
    await page.reload();
    await visit.turnReaches(0, 'done');
    await page.evaluate("for (const card of document.querySelectorAll('article details')) card.open = true");
    await visit.shows(visit.turn(0).getByText(name));
    expect(await visit.turn(0).locator('[data-tool]').count()).toBe(hostile.length + 1);
    await visit.shows(visit.turn(0).locator('[data-tool=read] pre').getByText('over all').first());
    await visit.shows(conversations(visit).getByRole('link', { name: /script/u }));
    expect(await page.evaluate(taken)).toEqual([]);
    expect(visit.foreignRequests).toEqual([]);
  });

  it('sends files with a message', async () => {
    await using visit = await visitWith();
    await visit.page
      .locator('input[type=file]')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('from the file') });
    await visit.say('Read this');
    await visit.turnReaches(0, 'done');
    await visit.turn(0).getByText('notes.txt').waitFor();
    expect(JSON.stringify(model.requests.at(-1)?.raw)).toContain('from the file');
  });

  it('names the host of a link whose label has another one, wherever that stands', async () => {
    await using visit = await visitWith();
    await visit.say(
      '[[say:[https://bank.example/login?from=evil.example](https://evil.example/x) and [evil.example](https://evil.example/y)]]',
    );
    await visit.turnReaches(0, 'done');
    // Before its renderer is there, a reply is text without links.
    await eventuallyHolds(async () =>
      expect(
        await visit
          .turn(0)
          .getByRole('link', { name: /^(?!Life of this turn$)/u })
          .allTextContents(),
      ).toEqual(['https://bank.example/login?from=evil.example(evil.example)', 'evil.example']),
    );
  });

  it('writes nothing in a customer’s place', async () => {
    await using visit = await visitWith();
    const response = await fetch(`${system.url}/api/cs`, {
      method: 'POST',
      headers: { 'x-api-key': keys.cs, 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ message: 'My parcel? [[say:On its way.]]', sender: '+49 151 1', channel: 'whatsapp' }),
    });
    expect(response.status).toBe(200);
    await visit.page.reload();
    await visit.page.getByRole('link', { name: /^My parcel/u }).click();
    await visit.turnReaches(0, 'done');
    const field = visit.page.getByLabel('Message', { exact: true });
    await eventuallyHolds(async () =>
      expect([await field.isDisabled(), await field.getAttribute('placeholder')]).toEqual([true, expect.stringContaining('take it over')]),
    );
    // Another page that acts as the same sender has a separate conversation.
    await visit.page.getByRole('button', { name: 'New conversation' }).click();
    await visit.page.getByText('Customer', { exact: true }).click();
    await visit.page.getByLabel('Sender').fill('+49 151 1');
    await visit.page.getByLabel('Channel').selectOption({ label: 'WhatsApp' });
    await visit.say('It is me [[say:Who?]]');
    await visit.turnReaches(0, 'done');
    const { index } = await system.scope(keys.tenantId);
    await eventuallyHolds(async () =>
      expect((await index.listSessions({ limit: 10 })).items.map(({ messageCount }) => messageCount)).toEqual([2, 2]),
    );
  });

  it('talks as a customer, who finds the same conversation again', async () => {
    await using visit = await visitWith();
    await visit.page.getByText('Customer', { exact: true }).click();
    for (const [index, question] of ['first', 'second'].entries()) {
      await visit.page.getByLabel('Sender').fill('+49 151 1');
      await visit.page.getByLabel('Channel').selectOption({ label: 'Telegram' });
      await visit.say(`${question} [[say:reply to ${question}]]`);
      // The second time, the first turn is shown as well.
      await visit.turn(index).getByText(`reply to ${question}`, { exact: true }).waitFor();
      await visit.turnReaches(index, 'done');
      await visit.page.getByRole('button', { name: 'New conversation' }).click();
    }
    const { index } = await system.scope(keys.tenantId);
    const four = expect.objectContaining({ agent: 'cs', channel: 'channel_c', messageCount: 4 });
    await eventuallyHolds(async () => expect((await index.listSessions({ limit: 10 })).items).toEqual([four]));
  });

  it('talks to an agent of the tenant’s own', async () => {
    await using visit = await visitWith();
    const { files, index } = await system.scope(keys.tenantId);
    await files.writeText('agents/books.md', '---\ndescription: Keeps the books\n---\nKeep them.\n');
    await files.writeText('agents/broken.md', 'no front matter');
    await visit.page.reload();
    const choice = visit.page.getByRole('combobox', { name: 'Agent', exact: true });
    await choice.selectOption('books');
    await visit.page.getByRole('heading', { name: 'Talk to books' }).waitFor();
    await eventuallyHolds(async () => expect(await choice.getByRole('option').allTextContents()).toEqual(['Admin', 'Customer', 'books']));
    await visit.say('[[say:kept]]');
    await visit.turnReaches(0, 'done');
    await eventuallyHolds(async () => expect((await index.listSessions({ limit: 10 })).items).toMatchObject([{ agent: 'books' }]));
    // Its conversations are listed apart, and those of a channel.
    const links = conversations(visit).getByRole('link');
    const narrow = async (name: string, option: string): Promise<void> =>
      void (await visit.page.getByRole('combobox', { name }).selectOption(option));
    await visit.page.getByRole('button', { name: 'New conversation' }).click();
    await visit.page.getByRole('combobox', { name: 'Agent', exact: true }).selectOption('Admin');
    await visit.say('[[say:no book]]');
    await eventuallyHolds(async () => expect(await links.count()).toBe(2));
    await narrow('Own agent', 'books');
    await eventuallyHolds(async () => expect(await links.count()).toBe(1));
    await narrow('Own agent', 'all');
    await narrow('Came in by', 'Telegram');
    await visit.shows(visit.page.getByText('None of these yet.'));
    await narrow('Came in by', 'Web');
    await eventuallyHolds(async () => expect(await links.count()).toBe(2));
  });

  it('lists conversations with people, and those of sub-agents when asked', async () => {
    await using visit = await visitWith();
    const task = JSON.stringify({ action: 'run', tasks: [{ task: 'Count the cups' }] }).replaceAll(']]', String.raw`]\u005d`);
    await visit.say(`Tidy up [[tools:subagents ${task}]] [[say:Done.]]`);
    await visit.turnReaches(0, 'done');
    const links = conversations(visit).getByRole('link');
    await visit.shows(links.filter({ hasText: 'Tidy up' }));
    await eventuallyHolds(async () => expect(await links.count()).toBe(1));
    await visit.page.getByLabel('Show schedules, heartbeats and sub-agents').check();
    await visit.shows(links.filter({ hasText: 'Sub-agent' }));
    await eventuallyHolds(async () => expect(await links.count()).toBe(2));
  });

  it('deletes a conversation after asking', async () => {
    await using visit = await visitWith();
    await visit.say('Delete me');
    await visit.turnReaches(0, 'done');
    await visit.page.getByRole('button', { name: /^Delete “Delete me”/u }).click();
    await visit.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await visit.page.getByText('No conversations yet').waitFor();
    const { index } = await system.scope(keys.tenantId);
    await eventuallyHolds(async () => expect((await index.listSessions({ limit: 10 })).items).toEqual([]));
  });

  it('fits a phone', async () => {
    await using visit = await visitWith({ viewport: { width: 360, height: 640 }, isMobile: true, hasTouch: true });
    await visit.say(`[[say:${'averyveryverylongword'.repeat(20)}]]`);
    await visit.turnReaches(0, 'done');
    await eventuallyHolds(async () => expect(await visit.page.evaluate('document.documentElement.scrollWidth')).toBe(360));
    await visit.page.getByRole('button', { name: 'Conversations' }).click();
    await conversations(visit).getByRole('link').first().click();
    await conversations(visit).waitFor({ state: 'hidden' });
  });
});
