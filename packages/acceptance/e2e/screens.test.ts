import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { startScriptedSystem, status, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { z } from 'zod';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { BrowserVisit, expectSoundPage, signInOperator, signInOwner } from './page-checks.ts';
import { openScreen, operatorScreens, ownerScreens, toPath, widths, type Shown } from './screen-lists.ts';

/** Kept until the next run, which names it. */
const folder = join(import.meta.dirname, '../../../.cache/screens');
const opsToken = 'the-token-of-operators';

let system: System;
let browser: Browser;
let filled: Shown;
/** Who has signed in; `visitors` has not. */
const signedIn: Record<string, BrowserContextOptions> = {};

const inBrowser = chromiumPath === undefined ? describe.skip : describe;
const Made = z.object({ id: z.string() });
const Replied = z.object({ contact_id: z.string() });

/** Something for every screen to show. */
async function fill({ admin, tenantId }: TenantKeys): Promise<Shown> {
  const headers = { 'x-api-key': admin, accept: 'application/json', 'content-type': 'application/json' };
  const post = async (path: string, body: object): Promise<unknown> =>
    (await fetch(`${system.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).json();
  await post('/api/admin', { message: 'What did customers ask yesterday?' });
  const asked = { message: 'Is the shop open?', sender: 'ann', channel: 'telegram' };
  const { contact_id: session } = Replied.parse(await post('/api/cs', asked));
  const { contacts, handoffs } = await system.scope(tenantId);
  await contacts.remember({ sender: 'ann', displayName: 'Ann Lee' });
  await handoffs.request(session, { reason: 'asked for a person', by: { kind: 'operator' } });
  const timing = { cron: '0 8 * * 1', timezone: 'Europe/Berlin' };
  const { id: schedule } = Made.parse(await post('/api/cron', { name: 'Weekly report', message: 'Report.', schedule: timing }));
  await post('/api/admin', { message: 'This one fails' });
  let turn = '';
  await eventuallyHolds(async () => {
    const answer = await fetch(`${system.url}/api/turns?status=failed`, { headers });
    [{ id: turn }] = z.tuple([Made]).parse(await answer.json());
  });
  return { tenant: tenantId, turn, session, schedule };
}

/** What is looked at, by who looks. */
const looks = [
  ['visitors', { 'owner-sign-in': '/', 'operator-sign-in': '/operate' }],
  ['owner', ownerScreens],
  ['operator', operatorScreens],
] as const;

/** Finds nothing wrong with a screen by day and by night, and keeps what it looks like. */
async function lookAt(visit: BrowserVisit, path: string, kept: string): Promise<void> {
  const { page } = visit;
  await openScreen(visit, path);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await visit.shows(page.locator(`html[data-theme=${colorScheme}]`));
    await expectSoundPage(page);
    await page.screenshot({ path: join(folder, `${kept}-${colorScheme}.png`) });
  }
}

inBrowser('every screen of the console is sound', () => {
  setUpOnce(async (stack) => {
    const started = await startScriptedSystem(stack, { uis: 1, crons: 1, env: { OPS_TOKEN: opsToken } });
    ({ system } = started);
    started.model.when('This one fails', [status(400)]);
    browser = stack.use(await startChromium(chromiumPath ?? ''));
    const keys = await system.createTenant('shop');
    filled = await fill(keys);
    const url = system.uiUrls[0] ?? '';
    signedIn['owner'] = await signInOwner(browser, url, keys.admin);
    signedIn['operator'] = await signInOperator(browser, url, opsToken);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
  });

  describe.each(widths)('%s', (width, options) => {
    describe.each(looks)('for %s', (who, screens) => {
      let visit: BrowserVisit;

      setUpOnce(async (stack) => {
        visit = stack.use(await BrowserVisit.begin(browser, system.uiUrls[0] ?? '', { ...signedIn[who], ...options }));
      });

      it.each(Object.entries(screens))('%s', async (name, address) => {
        await lookAt(visit, toPath(address, filled), `${who}-${width}-${name}`);
        expect(visit.complaints.texts).toEqual([]);
      });
    });
  });
});
