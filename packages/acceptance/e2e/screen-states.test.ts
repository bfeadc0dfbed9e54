import { describe, expect, it } from '@jest/globals';
import { gate, startScriptedSystem, type System } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { BrowserVisit, expectSoundPage, signInOperator, signInOwner } from './page-checks.ts';
import { openScreen, operatorScreens, ownerScreens, type Screens } from './screen-lists.ts';
import { walkByTab } from './walk-by-tab.ts';

const opsToken = 'the-token-of-operators';
/** Screens that say what they say by themselves. */
const asksNothing = new Set(['not-found', 'internals']);
const nothing = { turn: 'no-such-turn', session: '0'.repeat(32), schedule: 'no-such-schedule' };

let system: System;
let browser: Browser;
let owner: BrowserContextOptions;
let operator: BrowserContextOptions;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

async function begin(options: BrowserContextOptions): Promise<BrowserVisit> {
  return await BrowserVisit.begin(browser, system.uiUrls[0] ?? '', options);
}

const problem = {
  status: 503,
  contentType: 'application/problem+json',
  body: JSON.stringify({
    type: 'about:blank',
    title: 'The service is overloaded',
    status: 503,
    detail: 'The console cannot reach the gateway at the moment. Check that it runs, then try again.',
    code: 'overloaded',
    requestId: 'r1',
  }),
};

/** The service as a page finds it: silent at first, then away, then there. `passed` goes through at all times. */
class Service {
  #isAway = true;
  #answers = gate();

  static async between(page: Page, passed: RegExp): Promise<Service> {
    const service = new Service();
    await page.route(/\/api\//u, async (route) => {
      if (passed.test(route.request().url())) {
        await route.continue();
        return;
      }
      await service.#answers.opened;
      await (service.#isAway ? route.fulfill(problem) : route.continue());
    });
    return service;
  }

  fallSilent(): void {
    this.#answers = gate();
    this.#isAway = true;
  }

  goAway(): void {
    this.#answers.open();
  }

  comeBack(): void {
    this.#isAway = false;
  }
}

/** What one screen shows of the service's three states, in German. */
async function seeStates(visit: BrowserVisit, path: string, service: Service): Promise<void> {
  const { page } = visit;
  const alerts = page.getByRole('alert').filter({ hasText: 'Der Dienst kann im Moment nicht antworten.' });
  // Of this alert: one that says that there is no such thing offers the same.
  const again = alerts.getByRole('button', { name: 'Noch einmal versuchen' });
  service.fallSilent();
  await visit.goTo(path);
  await visit.shows(page.getByRole('status').filter({ hasText: 'Lädt …' }).first());
  service.goAway();
  // The page asks again by itself before it says so.
  await eventuallyHolds(async () => {
    await page.clock.runFor(5000);
    expect(await alerts.count()).toBeGreaterThan(0);
  });
  service.comeBack();
  await eventuallyHolds(async () => {
    if ((await alerts.count()) > 0) await again.first().click({ timeout: 5000 });
    expect(await alerts.count()).toBe(0);
  });
}

/** A screen after the other. `passed`: what is answered at all times. */
async function seeAllStates(screens: Screens, passed: RegExp, options: BrowserContextOptions): Promise<void> {
  await using visit = await begin({ ...options, locale: 'de-DE' });
  await visit.page.clock.install();
  const service = await Service.between(visit.page, passed);
  for (const [name, path] of Object.entries(screens)) {
    if (!asksNothing.has(name)) await seeStates(visit, path, service);
  }
}

/** By screen: what a walk by Tab finds wrong, behind a look by axe. */
async function walkAll(screens: Screens, options: BrowserContextOptions): Promise<readonly (readonly [string, readonly string[]])[]> {
  await using visit = await begin(options);
  const found: (readonly [string, readonly string[]])[] = [];
  for (const [name, path] of Object.entries(screens)) {
    await openScreen(visit, path);
    await expectSoundPage(visit.page);
    found.push([name, await walkByTab(visit.page)]);
  }
  return found.filter(([, wrong]) => wrong.length > 0);
}

inBrowser('every screen of the console', () => {
  setUpOnce(async (stack) => {
    ({ system } = await startScriptedSystem(stack, { uis: 1, crons: 1, env: { OPS_TOKEN: opsToken } }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
    const keys = await system.createTenant('empty');
    const url = system.uiUrls[0] ?? '';
    owner = await signInOwner(browser, url, keys.admin);
    operator = await signInOperator(browser, url, opsToken);
  });

  it('says that it waits for the service, then why nothing comes, and is there once it is asked to try again', async () => {
    const both = [
      seeAllStates(ownerScreens(nothing), /\/api\/feed/u, owner),
      // Without the overview the pages show the sign-in.
      seeAllStates(operatorScreens('empty', nothing), /\/ops\/api\/(?:feed|overview)/u, operator),
    ];
    expect(await Promise.all(both)).toHaveLength(2);
  });

  it('of an owner is sound where there is nothing yet, and is walked through by Tab: past the navigation, then to every control', async () => {
    expect(await walkAll(ownerScreens(nothing), owner)).toEqual([]);
  });

  it('of operators is so, too', async () => {
    expect(await walkAll(operatorScreens('empty', nothing), operator)).toEqual([]);
  });
});
