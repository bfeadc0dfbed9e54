import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { gate, onePixelPng, say, startScriptedSystem, until, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Locator } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { ConsolePage } from './console-page.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { expectSoundPage, onPhone } from './page-checks.ts';

let model: ScriptedModel;
let system: System;
let browser: Browser;
let keys: TenantKeys;
let tenants = 0;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

async function visitWith(options: BrowserContextOptions = {}): Promise<ConsolePage> {
  tenants += 1;
  keys = await system.createTenant(`tenant-${String(tenants)}`);
  const visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '', options);
  await visit.enter(keys.admin);
  return visit;
}

/** The agent is busy until the gate is opened. */
async function keepBusy(visit: ConsolePage, question: string): Promise<ReturnType<typeof gate<void>>> {
  const goOn = gate();
  model.when(question, [say('one two '), until(goOn.opened), say('three')]);
  await visit.say(question);
  await visit.turn(0).getByText('one two').waitFor();
  return goOn;
}

const field = ({ page }: ConsolePage) => page.getByLabel('Message', { exact: true });

/** What was asked, in order, as the page shows it. */
async function questions({ page }: ConsolePage): Promise<string[]> {
  return page.locator('article h2:text-is("You") + ul + div, article h2:text-is("You") + div').allInnerTexts();
}

inBrowser('messages in the chat', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack, { uis: 1 }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
  });

  it('that were never accepted do not reach the tenant who signs in next, while their tab was away', async () => {
    await using visit = await visitWith();
    const refused = { type: 'about:blank', title: 'No', status: 400, detail: 'No.', code: 'invalid_request', requestId: 'r' };
    await visit.page.route('**/api/admin*', async (route) =>
      route.fulfill({ status: 400, contentType: 'application/problem+json', body: JSON.stringify(refused) }),
    );
    await visit.say('A secret of the first');
    await visit.turn(0).getByRole('alert').waitFor();
    const tab = await visit.openTab();
    // As a tab is that the browser has put away: it hears of nothing.
    await visit.page.goto('about:blank');
    await visit.page.unrouteAll();
    await tab.getByRole('button', { name: 'Sign out' }).click();
    const next = await system.createTenant('tenant-next');
    await tab.getByLabel('API key').fill(next.admin);
    await tab.getByRole('button', { name: 'Sign in' }).click();
    await tab.getByText('No conversations yet').waitFor();
    await visit.page.goto(`${system.uiUrls[0] ?? ''}/chat`);
    await visit.say('Of the second [[say:fine]]');
    await visit.turnReaches(0, 'done');
    expect(await questions(visit)).toEqual(['Of the second [[say:fine]]']);
    expect(await visit.page.evaluate('JSON.stringify(sessionStorage)')).not.toContain('secret');
    const { index } = await system.scope(next.tenantId);
    await eventuallyHolds(async () => expect((await index.listSessions({ limit: 10 })).items).toMatchObject([{ messageCount: 2 }]));
  });

  it('that are sent again and again do not reach the tenant who signs in meanwhile, nor stay in the tab', async () => {
    await using visit = await visitWith();
    await visit.page.route('**/api/admin*', async (route) =>
      route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"code":"overloaded"}' }),
    );
    const refused = visit.page.waitForResponse('**/api/admin*');
    await visit.say('A secret of the first');
    await refused;
    await visit.page.getByRole('button', { name: 'Sign out' }).click();
    const next = await system.createTenant('tenant-meanwhile');
    await visit.enter(next.admin);
    const repeated = visit.page.waitForResponse((response) => response.url().includes('/api/admin') && response.status() !== 503);
    await visit.page.unrouteAll({ behavior: 'wait' });
    expect((await repeated).status()).toBe(401);
    await visit.say('Of the second [[say:fine]]');
    await visit.turnReaches(0, 'done');
    expect(await questions(visit)).toEqual(['Of the second [[say:fine]]']);
    expect(await visit.page.evaluate('JSON.stringify(sessionStorage)')).not.toContain('secret');
    const { index } = await system.scope(next.tenantId);
    await eventuallyHolds(async () => expect((await index.listSessions({ limit: 10 })).items).toMatchObject([{ messageCount: 2 }]));
  });

  it('that wait are taken back at once, with their words and files, which a reload says', async () => {
    await using visit = await visitWith();
    const goOn = await keepBusy(visit, 'Count slowly');
    await visit.page
      .locator('input[type=file]')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('from the file') });
    await visit.say('Not this');
    await visit.turn(1).getByText('Waits its turn').waitFor();
    await field(visit).fill('being written');
    const heard = visit.page.waitForResponse((response) => response.url().endsWith('/cancel'));
    await visit.turn(1).getByRole('button', { name: 'Take back' }).click();
    // While the first one still runs.
    await eventuallyHolds(async () => expect(await visit.page.getByRole('article').count()).toBe(1));
    await eventuallyHolds(async () => expect(await field(visit).inputValue()).toBe('Not this\n\nbeing written'));
    await visit.shows(visit.page.locator('form').getByText('notes.txt'));
    // The page does not wait for the service, which has to have heard of it before it is asked.
    await heard;
    await visit.page.reload();
    await visit.shows(visit.turn(1).getByText('Taken back before it was begun.'));
    goOn.open();
    await visit.turnReaches(0, 'done');
    await eventuallyHolds(async () => {
      const { index } = await system.scope(keys.tenantId);
      expect((await index.listTurns({ limit: 5, status: 'cancelled' })).items).toHaveLength(1);
    });
    await visit.page.reload();
    await visit.shows(visit.turn(1).getByText('Taken back before it was begun.'));
    expect(await visit.turn(1).getByText('tokens').count()).toBe(0);
    expect(JSON.stringify(model.requests)).not.toContain('from the file');
  });

  it('that wait for their files take the focus from no other field when they go', async () => {
    await using visit = await visitWith();
    const { page } = visit;
    const stored = gate();
    await page.route('**/api/uploads', async (route) => {
      await stored.opened;
      await route.continue();
    });
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('from the file') });
    await visit.say('Read this [[say:Read]]');
    const search = page.getByRole('searchbox', { name: 'Search conversations' });
    await search.fill('Read');
    stored.open();
    await visit.turnReaches(0, 'done');
    await visit.shows(visit.turn(0).getByText('notes.txt'));
    await page.keyboard.type(' this');
    expect([await search.inputValue(), await field(visit).inputValue()]).toEqual(['Read this', '']);
  });

  it('that wait are written anew, and those behind them stay behind them', async () => {
    await using visit = await visitWith();
    const goOn = await keepBusy(visit, 'Count once more');
    for (const [index, text] of ['second [[say:reply two]]', 'third [[say:reply three]]'].entries()) {
      await visit.say(text);
      await visit
        .turn(index + 1)
        .getByText('Waits its turn')
        .waitFor();
    }
    await visit.turn(1).getByRole('button', { name: 'Edit' }).click();
    await visit.page.getByLabel('Edited message').fill('other [[say:reply other]]');
    await visit.page.getByRole('button', { name: 'Save' }).click();
    await eventuallyHolds(async () =>
      expect(await questions(visit)).toEqual(['Count once more', 'other [[say:reply other]]', 'third [[say:reply three]]']),
    );
    await visit.turn(2).getByText('Waits its turn').waitFor();
    goOn.open();
    await visit.turnReaches(2, 'done');
    await visit.shows(visit.turn(1).getByText('reply other', { exact: true }));
    await visit.shows(visit.turn(2).getByText('reply three', { exact: true }));
  });

  it('that begin while they are written anew keep these words, which take no focus afterwards', async () => {
    await using visit = await visitWith();
    const goOn = await keepBusy(visit, 'Count before the edit');
    const ended = gate();
    model.when('second of them', [say('Here it is'), until(ended.opened), say(', all of it')]);
    await visit.say('second of them');
    await visit.turn(1).getByText('Waits its turn').waitFor();
    await visit.turn(1).getByRole('button', { name: 'Edit' }).click();
    const editor = visit.page.getByLabel('Edited message');
    await editor.fill('worth keeping');
    goOn.open();
    await visit.shows(visit.turn(1).getByText('Here it is'));
    expect(await editor.inputValue()).toBe('worth keeping');
    await visit.shows(visit.turn(1).getByText('it does not wait any more'));
    expect(await visit.turn(1).getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
    await expectSoundPage(visit.page);
    await field(visit).fill('the next');
    ended.open();
    await visit.turnReaches(1, 'done');
    await visit.shows(visit.turn(1).getByText('Here it is, all of it'));
    await visit.page.keyboard.type(' one');
    expect([await editor.inputValue(), await field(visit).inputValue()]).toEqual(['worth keeping', 'the next one']);
    await visit.turn(1).getByRole('button', { name: 'Cancel' }).click();
    await visit.shows(visit.turn(1).getByText('second of them'));
  });

  it('that wait are sent now, before the others, and the running turn ends', async () => {
    await using visit = await visitWith();
    await keepBusy(visit, 'Count for ever');
    for (const [index, text] of ['second [[say:reply two]]', 'third [[say:reply three]]'].entries()) {
      await visit.say(text);
      await visit
        .turn(index + 1)
        .getByText('Waits its turn')
        .waitFor();
    }
    await visit.turn(2).getByRole('button', { name: 'Send now' }).click();
    await visit.shows(visit.turn(0).getByText('Stopped.'));
    await visit.turnReaches(2, 'done');
    expect(await questions(visit)).toEqual(['Count for ever', 'third [[say:reply three]]', 'second [[say:reply two]]']);
    await visit.shows(visit.turn(1).getByText('reply three', { exact: true }));
    await visit.shows(visit.turn(2).getByText('reply two', { exact: true }));
    expect(await visit.turn(0).getByText('tokens').count()).toBe(0);
  });

  it('that come back do not go by themselves with one that waits for its file', async () => {
    await using visit = await visitWith();
    const goOn = await keepBusy(visit, 'Count beside a file');
    await visit.say('Not this');
    await visit.turn(1).getByText('Waits its turn').waitFor();
    const there = gate();
    await visit.page.route('**/api/uploads', async (route) => {
      await there.opened;
      await route.continue();
    });
    await visit.page
      .locator('input[type=file]')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('from the file') });
    await visit.say('With a file');
    await visit.shows(visit.page.getByRole('button', { name: 'Sends when the files are there' }));
    await visit.turn(1).getByRole('button', { name: 'Take back' }).click();
    await eventuallyHolds(async () => expect(await field(visit).inputValue()).toBe('Not this\n\nWith a file'));
    const stored = visit.page.waitForResponse('**/api/uploads');
    there.open();
    await stored;
    await eventuallyHolds(async () =>
      expect(await visit.page.getByRole('button', { name: 'Send; waits until the agent is free' }).isEnabled()).toBe(true),
    );
    goOn.open();
    await visit.turnReaches(0, 'done');
    expect(await field(visit).inputValue()).toBe('Not this\n\nWith a file');
    expect(await visit.page.getByRole('article').count()).toBe(1);
  });

  it('take ten files, and say how many were left out', async () => {
    await using visit = await visitWith();
    const files = Array.from({ length: 12 }, (_, index) => ({
      name: `file-${String(index)}.txt`,
      mimeType: 'text/plain',
      buffer: Buffer.from(`file ${String(index)}`),
    }));
    await visit.page.locator('input[type=file]').setInputFiles(files);
    await visit.shows(visit.page.getByText('2 files were left out: at most 10 go with a message.'));
    expect(await visit.page.getByRole('list', { name: 'Attachments' }).getByRole('listitem').count()).toBe(10);
  });

  it('are still there to be copied when the key was revoked meanwhile', async () => {
    await using visit = await visitWith();
    await visit.say('before [[say:fine]]');
    await visit.turnReaches(0, 'done');
    await field(visit).fill('worth keeping');
    const scope = await system.scope(keys.tenantId);
    for (const { id } of await scope.keys.list()) await scope.keys.revoke(id);
    const ask = async (): Promise<number> => (await fetch(`${system.url}/api/whoami`, { headers: { 'x-api-key': keys.admin } })).status;
    await eventuallyHolds(async () => expect(await ask()).toBe(401));
    await visit.page.keyboard.press('Enter');
    await visit.shows(visit.page.getByLabel('API key'));
    const unsent = visit.page.getByRole('region', { name: 'What you wrote was not sent' });
    await visit.shows(unsent.getByText('worth keeping', { exact: true }));
    await expectSoundPage(visit.page);
    const again = await system.createTenant('tenant-again');
    await visit.enter(again.admin);
    await visit.page.getByRole('button', { name: 'Sign out' }).click();
    await visit.shows(visit.page.getByLabel('API key'));
    expect(await unsent.count()).toBe(0);
  });

  it('keep a table’s words whole on a phone, and the title in view beside a long name', async () => {
    await using visit = await visitWith(onPhone);
    const scope = await system.scope(keys.tenantId);
    const name = 'a-very-long-name-of-an-agent-that-has-no-end';
    await scope.files.writeText(`agents/${name}.md`, '---\ndescription: Has a long name\n---\nBe brief.\n');
    await visit.page.goto(new URL(`/chat/new/${name}`, visit.page.url()).href);
    const cells = ['Donaudampfschifffahrt', '1234567890', 'Quartalsergebnis', 'Verantwortlichkeit'];
    const row = (texts: readonly string[]): string => `| ${texts.join(' | ')} |`;
    model.when('Show a table', [say([row(cells), row(cells.map(() => '---')), row(cells)].join('\n'))]);
    await visit.say('Show a table');
    await visit.turnReaches(0, 'done');
    await visit.shows(visit.turn(0).locator('td').first());
    const lines = await visit
      .turn(0)
      .locator('td')
      .evaluateAll((found) =>
        found.map((cell) => {
          const range = cell.ownerDocument.createRange();
          range.selectNodeContents(cell);
          return new Set([...range.getClientRects()].map(({ top }) => top)).size;
        }),
      );
    expect(lines).toEqual([1, 1, 1, 1]);
    const heading = visit.page.getByRole('heading', { level: 1 });
    expect((await heading.boundingBox())?.width).toBeGreaterThan(60);
    await expectSoundPage(visit.page);
  });

  it('keep the focus where it belongs around the list on a phone', async () => {
    await using visit = await visitWith(onPhone);
    const open = visit.page.getByRole('button', { name: 'Conversations' });
    await open.click();
    const drawer = visit.page.getByRole('dialog', { name: 'Sidebar' });
    await visit.shows(drawer.getByRole('searchbox'));
    // The list is there twice, one of them hidden; each says what it shows.
    const chosen = await visit.page
      .locator('fieldset', { hasText: 'Show conversations of' })
      .evaluateAll((groups) => groups.map((group) => group.querySelectorAll('input:checked').length));
    expect(chosen).toEqual([1, 1]);
    for (let presses = 0; presses < 25; presses += 1) {
      await visit.page.keyboard.press('Tab');
      const place = await visit.page.evaluate(
        "document.activeElement?.closest('dialog') !== null || document.activeElement === document.body",
      );
      expect(place).toBe(true);
    }
    await visit.page.keyboard.press('Escape');
    await eventuallyHolds(async () => expect(await open.evaluate((button) => button === button.ownerDocument.activeElement)).toBe(true));
  });

  it('may be anything in Markdown, and are read by everyone', async () => {
    await using visit = await visitWith();
    const code = `const answer = "${'x'.repeat(300)}"; // so far`;
    const text = [
      '# One',
      '### Three',
      '- [x] done',
      '- [ ] open',
      '',
      '```js',
      code,
      '```',
      '',
      '> said',
      '',
      '$$',
      'x^2 + \\frac{1}{2}',
      '$$',
    ];
    model.when('Show all', [say(text.join('\n'))]);
    await visit.say('Show all');
    await visit.turnReaches(0, 'done');
    // Coloured, and drawn, from a script that is loaded for it, under the page's policy.
    const keyword = visit
      .turn(0)
      .locator('pre span', { hasText: /^const$/u })
      .last();
    const readColour = async (piece: Locator): Promise<string | undefined> =>
      piece.evaluate((element) => element.ownerDocument.defaultView?.getComputedStyle(element).color);
    await eventuallyHolds(async () => expect(await readColour(keyword)).not.toBe(await readColour(visit.turn(0).locator('blockquote'))));
    await visit.shows(visit.turn(0).locator('math mfrac'));
    await expectSoundPage(visit.page);
  });

  it('have footnotes, whose links lead to the notes of their own message and back', async () => {
    await using visit = await visitWith();
    model.when(/Footnote/u, [say('First[^1].\n\n[^1]: A first note.')], [say('Second[^1].\n\n[^1]: A second note.')]);
    await visit.say('Footnote one');
    await visit.turnReaches(0, 'done');
    await visit.say('Footnote two');
    await visit.turnReaches(1, 'done');
    const turn = visit.turn(1);
    await turn.getByRole('link', { name: '1', exact: true }).click();
    await visit.shows(turn.locator('li:target', { hasText: 'A second note.' }));
    await turn.getByRole('link', { name: 'Back to reference 1' }).click();
    await visit.shows(turn.locator('a:target', { hasText: '1' }));
    await expectSoundPage(visit.page);
    expect(visit.complaints.texts).toEqual([]);
  });

  it('show the files that came with them, which open and are downloaded', async () => {
    await using visit = await visitWith();
    const buffer = Buffer.from('from the file');
    await visit.page.locator('input[type=file]').setInputFiles([
      { name: 'notes.txt', mimeType: 'text/plain', buffer },
      { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(onePixelPng) },
    ]);
    await visit.say('Look at these [[say:Seen]]');
    await visit.turnReaches(0, 'done');
    await visit.page.reload();
    await visit.turn(0).getByRole('button', { name: 'notes.txt' }).click();
    const dialog = visit.page.getByRole('dialog');
    await visit.shows(dialog.getByText('from the file', { exact: true }));
    await expectSoundPage(visit.page);
    const [download] = await Promise.all([
      visit.page.waitForEvent('download'),
      dialog.getByRole('button', { name: 'Save the file' }).click(),
    ]);
    expect([download.suggestedFilename(), await readFile(await download.path(), 'utf8')]).toEqual(['notes.txt', 'from the file']);
    await visit.page.keyboard.press('Escape');
    await visit.turn(0).getByRole('button', { name: 'dot.png' }).click();
    const picture = dialog.getByRole('img', { name: 'dot.png' });
    await eventuallyHolds(async () => expect(await picture.evaluate((image: { naturalWidth?: number }) => image.naturalWidth)).toBe(1));
  });
});
