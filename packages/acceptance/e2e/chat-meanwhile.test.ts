import { describe, expect, it } from '@jest/globals';
import { gate, say, startScriptedSystem, until, type ScriptedModel, type System } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { ConsolePage } from './console-page.ts';
import { eventuallyHolds } from './eventually-holds.ts';

let model: ScriptedModel;
let system: System;
let browser: Browser;
let tenants = 0;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

async function visitWithKey(): Promise<ConsolePage> {
  tenants += 1;
  const { admin } = await system.createTenant(`tenant-${String(tenants)}`);
  const visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '');
  await visit.enter(admin);
  return visit;
}

/** Two turns, of which the second can be asked differently in another conversation. */
async function askTwice(visit: ConsolePage): Promise<void> {
  for (const [index, text] of ['first [[say:reply one]]', 'second [[say:reply two]]'].entries()) {
    await visit.say(text);
    await visit.turnReaches(index, 'done');
  }
}

inBrowser('the chat, while something comes by itself,', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack, { uis: 1 }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
  });

  it('leads to where a message is asked differently only the one who still waits for it, and begins that once', async () => {
    await using visit = await visitWithKey();
    const { page } = visit;
    await askTwice(visit);
    const goOn = gate();
    let asked = 0;
    await page.route('**/api/sessions/*/fork', async (route) => {
      asked += 1;
      await goOn.opened;
      await route.continue();
    });
    await visit.turn(1).getByRole('button', { name: 'Ask differently' }).click();
    await page.getByLabel('Edited message').fill('asked late [[say:reply late]]');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    await eventuallyHolds(async () => Promise.resolve(expect(asked).toBe(1)));
    await page.getByRole('button', { name: 'New conversation' }).click();
    await visit.shows(page.getByRole('heading', { name: 'Talk to your agent' }));
    const field = page.getByLabel('Message', { exact: true });
    await field.fill('being written');
    goOn.open();
    const isAsked = (): boolean => model.requests.some(({ userText }) => userText.includes('asked late'));
    await eventuallyHolds(async () => Promise.resolve(expect(isAsked()).toBe(true)));
    expect(new URL(page.url()).pathname).toBe('/chat/new/admin');
    expect(await field.inputValue()).toBe('being written');
    const links = page.getByRole('navigation', { name: 'Conversations' }).getByRole('link');
    await eventuallyHolds(async () => expect(await links.count()).toBe(2));
    // The newest is the first.
    await links.first().click();
    await visit.shows(visit.turn(1).getByText('reply late', { exact: true }));
    await visit.turnReaches(1, 'done');
    expect(asked).toBe(1);
  });

  it('keeps what is to be asked differently in its field where no other can be begun', async () => {
    await using visit = await visitWithKey();
    const { page } = visit;
    await askTwice(visit);
    await page.route('**/api/sessions/*/fork', async (route) =>
      route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"code":"overloaded"}' }),
    );
    await visit.turn(1).getByRole('button', { name: 'Ask differently' }).click();
    const editor = page.getByLabel('Edited message');
    await editor.fill('worth keeping [[say:kept]]');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await visit.shows(page.getByRole('alert').first());
    expect(await editor.inputValue()).toBe('worth keeping [[say:kept]]');
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await visit.shows(visit.turn(1).getByText('kept', { exact: true }));
    await visit.turnReaches(1, 'done');
  });

  it('stops no other turn than the one that runs when Stop or Escape is pressed', async () => {
    await using visit = await visitWithKey();
    const { page } = visit;
    const [first, last] = [gate(), gate()];
    model.when('Stop none of these', [say('begun'), until(first.opened), say(' and ended')]);
    model.when('Stop this one', [say('second'), until(gate().opened)]);
    model.when('Nor this', [say('third'), until(last.opened), say(' to its end')]);
    const cancelled: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/cancel')) cancelled.push(request.url());
    });
    await visit.say('Stop none of these');
    await visit.shows(visit.turn(0).getByText('begun'));
    for (const [index, text] of ['Stop this one', 'Nor this'].entries()) {
      await visit.say(text);
      await visit.shows(visit.turn(index + 1).getByText('Waits its turn'));
    }
    await page.getByRole('button', { name: 'Stop' }).hover();
    await page.mouse.down();
    first.open();
    await visit.shows(visit.turn(1).getByText('second'));
    await page.mouse.up();
    await page.getByLabel('Message', { exact: true }).focus();
    await page.keyboard.down('Escape');
    await visit.shows(visit.turn(2).getByText('third'));
    // As a key does that is held down.
    await page.keyboard.down('Escape');
    await page.keyboard.up('Escape');
    last.open();
    await visit.shows(visit.turn(2).getByText('third to its end'));
    await visit.turnReaches(2, 'done');
    await visit.shows(visit.turn(0).getByText('begun and ended'));
    await visit.shows(visit.turn(1).getByText('Stopped.'));
    expect(cancelled).toHaveLength(1);
  });
});
