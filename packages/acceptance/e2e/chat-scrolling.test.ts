import { describe, expect, it } from '@jest/globals';
import { gate, say, startScriptedSystem, until, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, Locator } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { ConsolePage } from './console-page.ts';
import { eventuallyHolds } from './eventually-holds.ts';

let model: ScriptedModel;
let system: System;
let browser: Browser;
let keys: TenantKeys;
let tenants = 0;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

async function visitWithKey(): Promise<ConsolePage> {
  tenants += 1;
  keys = await system.createTenant(`tenant-${String(tenants)}`);
  const visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '');
  await visit.enter(keys.admin);
  return visit;
}

async function ask(visit: ConsolePage, index: number, text: string): Promise<void> {
  await visit.say(text);
  await visit.turnReaches(index, 'done');
}

/** The conversation that is shown has so many stored turns instead of its own. */
async function storeTurns({ page }: ConsolePage, count: number): Promise<void> {
  const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  const { sessions } = await system.scope(keys.tenantId);
  const session = await sessions.load(id);
  if (session === undefined) throw new Error('no session');
  const at = new Date().toISOString();
  const many = Array.from({ length: count }, (_, index) => {
    const turnId = `old-${String(index)}`;
    const text = `question ${String(index)}`;
    const asked = { id: `${turnId}-u`, turnId, at, role: 'user' as const, text, sent: text };
    return [asked, { id: `${turnId}-a`, turnId, at, role: 'assistant' as const, text: `**answer** ${String(index)}` }];
  }).flat();
  await sessions.publish({ ...session, revision: session.revision + 1, messages: many, messageCount: many.length });
}

const lines = Array.from({ length: 60 }, (_, index) => `**line ${String(index)}**`).join('\n\n');

/** How far below the top of the page it stands. */
async function findTop(wanted: Locator): Promise<number> {
  return (await wanted.boundingBox())?.y ?? Number.NaN;
}

inBrowser('a conversation that is longer than its page', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack, { uis: 1 }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
  });

  it('opens with its last sixty turns, the others on demand, and is typed into', async () => {
    await using visit = await visitWithKey();
    await ask(visit, 0, 'the first [[say:reply first]]');
    await storeTurns(visit, 500);
    await visit.page.reload();
    await visit.shows(visit.page.getByText('answer 499'));
    expect(await visit.page.getByRole('article').count()).toBe(60);
    await visit.page.getByRole('button', { name: 'Show earlier messages' }).click();
    await eventuallyHolds(async () => expect(await visit.page.getByRole('article').count()).toBe(120));
    await visit.shows(visit.page.getByText('question 380', { exact: true }));
    const field = visit.page.getByLabel('Message', { exact: true });
    await field.pressSequentially('typed beside them');
    expect(await field.inputValue()).toBe('typed beside them');
  });

  it('stays where it is read while something is asked in another tab', async () => {
    await using visit = await visitWithKey();
    model.when('A long list', [say(lines)]);
    await ask(visit, 0, 'A long list');
    const tab = await visit.openTab();
    const turn = (index: number): Locator => tab.getByRole('article', { name: 'Turn' }).nth(index);
    // As its renderer draws it: before that, a reply is text of another height.
    await turn(0).locator('[data-streamdown=strong]').nth(59).waitFor();
    const read = turn(0).getByText('line 0', { exact: true });
    await read.scrollIntoViewIfNeeded();
    await tab.getByRole('button', { name: 'Latest' }).waitFor();
    const top = await findTop(read);
    await visit.say('Asked elsewhere [[say:reply two]]');
    await turn(1).getByText('Asked elsewhere').waitFor();
    await turn(1).getByText('reply two', { exact: true }).waitFor();
    expect(await findTop(read)).toBeCloseTo(top, 0);
    expect(await tab.getByRole('button', { name: 'Latest' }).count()).toBe(1);
  });

  it('stays where it is read when earlier messages come while an answer grows below', async () => {
    await using visit = await visitWithKey();
    const { page } = visit;
    await ask(visit, 0, 'the first [[say:reply first]]');
    await storeTurns(visit, 130);
    await page.reload();
    await visit.shows(page.getByText('answer 129'));
    const [grows, ends, earlier] = [gate(), gate(), gate()];
    model.when('A list that grows', [say('begun'), until(grows.opened), say(`\n\n${lines}`), until(ends.opened), say('\n\nended')]);
    await visit.say('A list that grows');
    await visit.shows(visit.turn(60).getByText('begun'));
    await page.route(/\/api\/sessions\/[^/]+\?.*before=/u, async (route) => {
      await earlier.opened;
      await route.continue();
    });
    const asked = page.waitForRequest(/before=/u);
    await page.getByRole('button', { name: 'Show earlier messages' }).click();
    await asked;
    grows.open();
    await visit.shows(visit.turn(60).locator('[data-streamdown=strong]').nth(59));
    const read = page.getByText('question 70', { exact: true });
    const top = await findTop(read);
    earlier.open();
    await eventuallyHolds(async () => expect(await page.getByRole('article').count()).toBe(121));
    await eventuallyHolds(async () => expect(Math.abs((await findTop(read)) - top)).toBeLessThan(3));
    ends.open();
    await visit.turnReaches(120, 'done');
  });

  it('stays at its end while more comes, also just as it is scrolled there, until the reader scrolls up', async () => {
    await using visit = await visitWithKey();
    await ask(visit, 0, 'first [[say:reply one]]');
    const { page } = visit;
    // What is drawn once its renderer is there makes the page stay at its end, too.
    await visit.turn(0).locator('.markdown').first().waitFor();
    // What comes is there before the browser tells of the scrolling.
    const grow = `{
      const content = document.querySelector('article').parentElement;
      const more = document.createElement('div');
      more.style.height = '3000px';
      content.append(more);
      content.parentElement.dispatchEvent(new Event('scroll'));
    }`;
    const below = `(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)(
      document.querySelector('article').parentElement.parentElement)`;
    const latest = page.getByRole('button', { name: 'Latest', exact: true });
    for (let round = 1; round <= 2; round += 1) {
      await page.evaluate(grow);
      await eventuallyHolds(async () => expect(await page.evaluate(below)).toBeLessThan(2));
      expect(await latest.count()).toBe(0);
    }
    await page.evaluate("document.querySelector('article').parentElement.parentElement.scrollTop = 100");
    await visit.shows(latest);
    expect(await page.evaluate(below)).toBeGreaterThan(60);
    await latest.click();
    await eventuallyHolds(async () => expect(await page.evaluate(below)).toBeLessThan(2));
    await latest.waitFor({ state: 'detached' });
  });
});
