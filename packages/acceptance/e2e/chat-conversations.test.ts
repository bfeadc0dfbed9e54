import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { gate, say, startScriptedSystem, until, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Locator } from 'playwright-core';
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

/** `field`: what the message field is called in the language of the browser. */
async function visitWith(options: BrowserContextOptions = {}, field = 'Message'): Promise<ConsolePage> {
  tenants += 1;
  keys = await system.createTenant(`tenant-${String(tenants)}`);
  const visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '', options);
  await visit.page.locator('input[type=password]').fill(keys.admin);
  await visit.page.keyboard.press('Enter');
  await visit.shows(visit.page.getByLabel(field, { exact: true }));
  return visit;
}

const list = ({ page }: ConsolePage): Locator => page.getByRole('navigation', { name: 'Conversations' });

async function ask(visit: ConsolePage, index: number, text: string): Promise<void> {
  await visit.say(text);
  await visit.turnReaches(index, 'done');
}

inBrowser('conversations in the chat', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack, { uis: 1 }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
  });

  it('are forked: a message is edited, answered again or gone on from in another one, and the first stays', async () => {
    await using visit = await visitWith();
    await ask(visit, 0, 'first [[say:reply one]]');
    await ask(visit, 1, 'second [[say:reply two]]');
    const original = visit.page.url();
    await expectSoundPage(visit.page);

    await visit.turn(1).getByRole('button', { name: 'Ask differently' }).click();
    await visit.page.getByLabel('Edited message').fill('other [[say:reply other]]');
    await visit.page.getByRole('button', { name: 'Ask', exact: true }).click();
    await visit.shows(visit.turn(1).getByText('reply other', { exact: true }));
    await visit.turnReaches(1, 'done');
    await visit.shows(visit.turn(0).getByText('reply one', { exact: true }));
    expect(visit.page.url()).not.toBe(original);
    await expectSoundPage(visit.page);

    // The first is as it was.
    await visit.page.getByRole('link', { name: 'Open the original' }).click();
    await visit.shows(visit.turn(1).getByText('reply two', { exact: true }));
    expect(visit.page.url()).toBe(original);

    await visit.turn(1).getByRole('button', { name: 'Answer again' }).click();
    await visit.page.getByRole('link', { name: 'Open the original' }).waitFor();
    await visit.turnReaches(1, 'done');
    await visit.shows(visit.turn(1).getByText('reply two', { exact: true }));
    expect(await visit.page.getByRole('article').count()).toBe(2);

    await visit.turn(0).getByRole('button', { name: 'Go on from here' }).click();
    await eventuallyHolds(async () => expect(await visit.page.getByRole('article').count()).toBe(1));
    await ask(visit, 1, 'third [[say:reply three]]');
    await visit.shows(visit.turn(1).getByText('reply three', { exact: true }));
  });

  it('begin anew when their first message is edited', async () => {
    await using visit = await visitWith();
    await ask(visit, 0, 'only [[say:reply only]]');
    const original = visit.page.url();
    await visit.turn(0).getByRole('button', { name: 'Ask differently' }).click();
    await visit.page.getByLabel('Edited message').fill('anew [[say:reply anew]]');
    await visit.page.keyboard.press('Enter');
    await visit.shows(visit.turn(0).getByText('reply anew', { exact: true }));
    await visit.turnReaches(0, 'done');
    expect(visit.page.url()).not.toBe(original);
    await eventuallyHolds(async () => expect(await list(visit).getByRole('link').count()).toBe(2));
  });

  it('are gone with their field as soon as another one is chosen: what is written next is not for it', async () => {
    await using visit = await visitWith();
    await ask(visit, 0, 'first [[say:reply one]]');
    // Within the same task of the page: nothing else comes between, neither a key nor a frame.
    const isGone: unknown = await visit.page.evaluate(`(async () => {
      const field = document.querySelector('textarea[aria-label=Message]');
      const [choose] = [...document.querySelectorAll('button')].filter(({ textContent }) => textContent.trim() === 'New conversation');
      choose.click();
      for (let rounds = 0; rounds < 100; rounds += 1) await null;
      return !field.isConnected;
    })()`);
    expect(isGone).toBe(true);
    await ask(visit, 0, 'second [[say:reply two]]');
    await visit.shows(visit.turn(0).getByText('reply two', { exact: true }));
  });

  it('are renamed while the agent answers, pinned, and found by words', async () => {
    await using visit = await visitWith();
    await ask(visit, 0, 'An old matter [[say:Noted]]');
    await visit.page.getByRole('button', { name: 'New conversation' }).click();
    const goOn = gate();
    model.when('A newer matter', [say('begun'), until(goOn.opened), say(' and ended')]);
    await ask(visit, 0, 'something [[say:ok]]');
    await visit.say('A newer matter');
    await visit.shows(visit.turn(1).getByText('begun'));
    const row = list(visit).getByRole('listitem').filter({ hasText: 'something' });
    await row.getByRole('button', { name: 'What to do' }).click();
    await expectSoundPage(visit.page);
    await visit.page.getByRole('textbox', { name: 'Name' }).fill('Zebra figures');
    await visit.page.getByRole('checkbox', { name: 'Pin' }).check();
    await visit.page.getByRole('button', { name: 'Save', exact: true }).click();
    await visit.shows(visit.page.getByRole('heading', { name: 'Zebra figures' }));
    goOn.open();
    await visit.turnReaches(1, 'done');
    await visit.shows(visit.page.getByRole('region', { name: 'Pinned' }).getByText('Zebra figures'));
    await visit.shows(visit.page.getByRole('heading', { name: 'Zebra figures' }));
    await visit.page.reload();
    await visit.shows(visit.page.getByRole('heading', { name: 'Zebra figures' }));
    const search = visit.page.getByRole('searchbox', { name: 'Search conversations' });
    await search.fill('old matter');
    await eventuallyHolds(async () =>
      expect(await list(visit).getByRole('link').allInnerTexts()).toEqual([expect.stringContaining('An old matter')]),
    );
    await search.fill('zebra');
    await eventuallyHolds(async () =>
      expect(await list(visit).getByRole('link').allInnerTexts()).toEqual([expect.stringContaining('Zebra figures')]),
    );
    await search.fill('nothing like it');
    await visit.shows(visit.page.getByText('No conversation has these words'));
  });

  it('are renamed and deleted however late that is answered: what was opened since stays as it is', async () => {
    await using visit = await visitWith();
    const { page } = visit;
    await ask(visit, 0, 'The first matter [[say:ok]]');
    await page.getByRole('button', { name: 'New conversation' }).click();
    await ask(visit, 0, 'The second matter [[say:fine]]');
    const row = (text: string): Locator => list(visit).getByRole('listitem').filter({ hasText: text });
    await visit.shows(row('The first matter'));
    const acts = { PATCH: { asked: gate(), answered: gate() }, DELETE: { asked: gate(), answered: gate() } };
    await page.route(/\/api\/sessions\/[0-9a-f]{32}$/u, async (route) => {
      const method = route.request().method();
      if (method === 'PATCH' || method === 'DELETE') {
        acts[method].asked.open();
        await acts[method].answered.opened;
      }
      await route.continue();
    });
    const dialog = page.getByRole('dialog');
    const name = dialog.getByRole('textbox', { name: 'Name' });
    const close = async (): Promise<void> => {
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await row('The second matter').getByRole('button', { name: 'What to do' }).click();
    await name.fill('Renamed late');
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await acts.PATCH.asked.opened;
    await close();
    await row('The first matter').getByRole('button', { name: 'What to do' }).click();
    await name.fill('Not saved yet');
    acts.PATCH.answered.open();
    await visit.shows(page.locator('h1').getByText('Renamed late'));
    expect(await dialog.count()).toBe(1);
    expect(await name.inputValue()).toBe('Not saved yet');
    await close();

    await row('Renamed late').getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await acts.DELETE.asked.opened;
    await close();
    await row('The first matter').getByRole('link').click();
    await visit.shows(visit.turn(0).getByText('ok', { exact: true }));
    const shown = page.url();
    acts.DELETE.answered.open();
    await row('Renamed late').waitFor({ state: 'detached' });
    expect(page.url()).toBe(shown);
  });

  it('are saved as Markdown and as JSON', async () => {
    await using visit = await visitWith();
    await ask(visit, 0, 'Keep this [[say:It is **kept**.]]');
    await list(visit).getByRole('button', { name: 'What to do' }).click();
    const saved = async (name: string): Promise<{ file: string; text: string }> => {
      const [download] = await Promise.all([visit.page.waitForEvent('download'), visit.page.getByRole('button', { name }).click()]);
      return { file: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') };
    };
    const markdown = await saved('Save as Markdown');
    expect(markdown.file).toMatch(/^Keep-this.*\.md$/u);
    expect(markdown.text).toContain('## You\n\nKeep this');
    expect(markdown.text).toContain('## Agent\n\nIt is **kept**.');
    const json = await saved('Save as JSON');
    expect(JSON.parse(json.text)).toMatchObject({ agent: 'admin', messages: [{ role: 'user' }, { role: 'assistant' }] });
  });

  it('have in every tab the name that they are given in one of them', async () => {
    await using visit = await visitWith();
    await ask(visit, 0, 'An old matter [[say:Noted]]');
    const tab = await visit.openTab();
    await tab.getByText('Noted', { exact: true }).waitFor();
    await tab.getByRole('heading', { level: 1, name: 'An old matter' }).waitFor();
    await list(visit).getByRole('button', { name: 'What to do' }).click();
    await visit.page.getByRole('textbox', { name: 'Name' }).fill('Zebra figures');
    await visit.page.getByRole('button', { name: 'Save', exact: true }).click();
    await visit.shows(visit.page.getByRole('heading', { level: 1, name: 'Zebra figures' }));
    await tab.getByRole('heading', { level: 1, name: 'Zebra figures' }).waitFor();
    expect(await tab.getByText('Noted', { exact: true }).count()).toBe(1);
  });

  it('show in every tab what is asked in one of them', async () => {
    await using visit = await visitWith();
    await ask(visit, 0, 'first [[say:reply one]]');
    const tab = await visit.openTab();
    const turn = (index: number): Locator => tab.getByRole('article', { name: 'Turn' }).nth(index);
    await turn(0).getByText('reply one', { exact: true }).waitFor();
    const goOn = gate();
    model.when('Seen elsewhere', [say('begun'), until(goOn.opened), say(' and ended')]);
    await visit.say('Seen elsewhere');
    await turn(1).getByText('Seen elsewhere').waitFor();
    await turn(1).getByText('begun').waitFor();
    await visit.say('And this waits [[say:reply three]]');
    await turn(2).getByText('Waits its turn').waitFor();
    // The service has heard of it before the turn could begin.
    await Promise.all([
      visit.page.waitForResponse((response) => response.url().endsWith('/cancel')),
      visit.turn(2).getByRole('button', { name: 'Take back' }).click(),
    ]);
    goOn.open();
    await turn(1).getByText('begun and ended').waitFor();
    await turn(2).getByText('Taken back before it was begun.').waitFor();
    expect(visit.complaints.texts).toEqual([]);
  });

  it('show in another tab all of a long message, with its files, once it is answered', async () => {
    await using visit = await visitWith();
    await ask(visit, 0, 'first [[say:reply one]]');
    const tab = await visit.openTab();
    await tab.getByText('reply one', { exact: true }).waitFor();
    const turn = tab.getByRole('article', { name: 'Turn' }).nth(1);
    const goOn = gate();
    model.when('A long story', [say('begun'), until(goOn.opened), say(' and ended')]);
    await visit.page
      .locator('input[type=file]')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('from the file') });
    await visit.say(`A long story: ${'and then '.repeat(40)}the end`);
    await turn.getByText(/^A long story.*…$/u).waitFor();
    goOn.open();
    await turn.getByText('begun and ended').waitFor();
    await turn.getByText(/^A long story.*the end$/u).waitFor();
    await turn.getByText('notes.txt').waitFor();
    expect(await turn.getByRole('button', { name: 'Answer again' }).count()).toBe(1);
    expect(visit.complaints.texts).toEqual([]);
  });

  it('are opened by Ctrl-K as they are shown there, whatever else is said in them meanwhile', async () => {
    await using visit = await visitWith();
    const { page } = visit;
    await ask(visit, 0, 'Linen shirts [[say:ok]]');
    const tab = await visit.openTab();
    await page.getByRole('button', { name: 'New conversation' }).click();
    await ask(visit, 0, 'Linen trousers [[say:fine]]');
    const order = async (of: Locator): Promise<readonly string[]> =>
      (await of.allInnerTexts()).map((text) => /Linen \w+/u.exec(text)?.[0] ?? text);
    const rows = list(visit).getByRole('link');
    await eventuallyHolds(async () => expect(await order(rows)).toEqual(['Linen trousers', 'Linen shirts']));
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Go to' }).fill('linen');
    const options = page.getByRole('dialog', { name: 'Go to' }).getByRole('option');
    await eventuallyHolds(async () => expect(await order(options)).toEqual(['Linen trousers', 'Linen shirts']));
    await tab.getByLabel('Message', { exact: true }).fill('And in blue [[say:too]]');
    await tab.keyboard.press('Enter');
    await tab.getByText('too', { exact: true }).waitFor();
    await eventuallyHolds(async () => expect(await order(rows)).toEqual(['Linen shirts', 'Linen trousers']));
    expect(await order(options)).toEqual(['Linen trousers', 'Linen shirts']);
    await page.keyboard.press('Enter');
    await visit.shows(visit.turn(0).getByText('fine', { exact: true }));
  });

  it('are read, and not changed, with a key that may only read', async () => {
    await using visit = await visitWith();
    await ask(visit, 0, 'To be read [[say:reply one]]');
    await using reader = await ConsolePage.open(browser, system.uiUrls[0] ?? '');
    await reader.signIn(keys.read);
    await reader.page.getByRole('link', { name: /^To be read/u }).click();
    await reader.shows(reader.turn(0).getByText('reply one', { exact: true }));
    const field = reader.page.getByLabel('Message', { exact: true });
    await eventuallyHolds(async () => expect(await field.getAttribute('placeholder')).toContain('may only read'));
    expect(await field.isDisabled()).toBe(true);
    for (const name of ['Delete', 'Answer again', 'Ask differently', 'Go on from here', 'Take over'])
      expect(await reader.page.getByRole('button', { name }).count()).toBe(0);
    await expectSoundPage(reader.page);
  });

  it('are opened by themselves once a service is back that was silent when they were to be', async () => {
    await using visit = await visitWith();
    const { page } = visit;
    await ask(visit, 0, 'first [[say:reply one]]');
    let isAway = true;
    // As over a Redis that does not answer: the connection of the feed stays, and nothing is told over it.
    await page.route(/\/api\/feed$/u, () => undefined);
    await page.route(/\/(?:api\/sessions\/[0-9a-f]{32}|readyz)(?:\?.*)?$/u, async (route) => {
      if (isAway) await route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"code":"overloaded"}' });
      else await route.continue();
    });
    await page.reload();
    const again = page.getByRole('main').getByRole('button', { name: 'Try again' });
    await visit.shows(again);
    expect(await page.getByRole('article').count()).toBe(0);
    isAway = false;
    await visit.shows(visit.turn(0).getByText('reply one', { exact: true }));
    expect(await again.count()).toBe(0);
  });

  it('are there in German, whatever the chat says by itself', async () => {
    await using visit = await visitWith({ locale: 'de-DE' }, 'Nachricht');
    await visit.page.getByRole('heading', { name: 'Mit Ihrem Agenten sprechen' }).waitFor();
    const goOn = gate();
    model.when('Zähle langsam', [say('eins '), until(goOn.opened), say('zwei')]);
    const write = async (text: string): Promise<void> => {
      await visit.page.getByLabel('Nachricht', { exact: true }).fill(text);
      await visit.page.keyboard.press('Enter');
    };
    await write('Zähle langsam');
    const turns = visit.page.getByRole('article');
    await turns.nth(0).getByText('eins', { exact: true }).waitFor();
    await write('Warte [[say:fertig]]');
    await visit.page.getByRole('button', { name: 'Zurücknehmen' }).waitFor();
    const english = /\b(?:Waits its turn|Take back|Send now|Stop|Conversations|New conversation|Show conversations)\b/u;
    expect(await visit.page.locator('body').innerText()).not.toMatch(english);
    await expectSoundPage(visit.page);
    goOn.open();
    // The question has the word as well.
    await turns.nth(1).getByText('fertig', { exact: true }).waitFor();
  });

  it('show which agents’ are listed in forced colours, too', async () => {
    await using visit = await visitWith({ forcedColors: 'active' });
    const outlines = await visit.page
      .getByRole('group', { name: 'Show conversations of' })
      .locator('label')
      .evaluateAll((labels) => labels.map((label) => label.ownerDocument.defaultView?.getComputedStyle(label).outlineStyle));
    expect(outlines).toEqual(['solid', 'none', 'none']);
  });

  it('need one script at first, of at most 180 kB, and no colours or formulas', async () => {
    await using visit = await visitWith();
    const folder = join(import.meta.dirname, '../../../services/ui/dist/web');
    const [main = ''] = /assets\/[^"]+\.js/u.exec(await readFile(join(folder, 'index.html'), 'utf8')) ?? [];
    expect((await stat(join(folder, `${main}.gz`))).size).toBeLessThan(180_000);
    await ask(visit, 0, 'Plain [[say:Plain words for $5]]');
    const listLoaded = async (): Promise<string[]> =>
      visit.page.evaluate<string[]>("performance.getEntriesByType('resource').map(({ name }) => name)");
    // Before its renderer is there, a reply is text.
    await visit.turn(0).locator('.markdown').first().waitFor();
    await eventuallyHolds(async () => expect((await listLoaded()).some((name) => name.includes('/markdown-'))).toBe(true));
    expect((await listLoaded()).filter((name) => name.includes('markdown-extras'))).toEqual([]);
  });
});
