import { describe, expect, it } from '@jest/globals';
import { gate, say, startScriptedSystem, status, until, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, Locator, Page } from 'playwright-core';
import { chromiumPath, startChromium } from '../chromium.ts';
import { eventuallyHolds } from '../eventually-holds.ts';
import { BrowserVisit, expectSoundPage } from '../page-checks.ts';

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

/** Asks the admin agent; its answer is not waited for. */
async function ask({ admin }: TenantKeys, message: string): Promise<void> {
  const response = await fetch(`${system.url}/api/admin`, {
    method: 'POST',
    headers: { 'x-api-key': admin, 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  });
  expect(response.status).toBe(200);
  await response.body?.cancel();
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
    await ask(keys, 'spoilt one');
    await ask(keys, 'spoilt two');
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
    await eventuallyHolds(async () => expect(await rows(page).count()).toBe(2));
    await ask(keys, 'long one');
    await ask(keys, 'long two');
    await page.getByLabel('State').selectOption('');
    await page.getByRole('button', { name: 'Cancel all …' }).click();
    await current.shows(dialog(page).getByText('2 turns would be cancelled.'));
    await dialog(page).getByRole('button', { name: 'Cancel 2' }).click();
    await current.shows(dialog(page).getByText('2 turns are asked to stop.'));
    await expectSoundPage(page);
    await dialog(page).getByRole('button', { name: 'Close' }).click();
    await page.getByLabel('State').selectOption('cancelled');
    await eventuallyHolds(async () => expect(await rows(page).count()).toBe(2));
    hold.open();
    expect(current.complaints).toEqual([]);
  });
});
