import { readFile } from 'node:fs/promises';
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

async function visitWith(options: BrowserContextOptions = {}): Promise<ConsolePage> {
  tenants += 1;
  keys = await system.createTenant(`tenant-${String(tenants)}`);
  const visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '', options);
  await visit.enter(keys.admin);
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
    expect(visit.complaints).toEqual([]);
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
    expect(visit.complaints).toEqual([]);
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
    expect(visit.complaints).toEqual([]);
  });
});
