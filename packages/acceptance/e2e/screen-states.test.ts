import { describe, expect, it } from '@jest/globals';
import { gate, startScriptedSystem, type System } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { BrowserVisit, expectSoundPage, signInOperator, signInOwner } from './page-checks.ts';
import { openScreen, operatorScreens, ownerScreens, toPath } from './screen-lists.ts';
import { walkByTab } from './walk-by-tab.ts';

const opsToken = 'the-token-of-operators';
/** Screens that say what they say by themselves. */
const asksNothing = new Set(['not-found', 'internals']);
const nothing = { tenant: 'empty', turn: 'no-such-turn', session: '0'.repeat(32), schedule: 'no-such-schedule' };

let system: System;
let browser: Browser;
const signedIn: Record<string, BrowserContextOptions> = {};

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

/**
 * Waits for what one screen shows of the service's three states, in German. @returns how many complaints stand there
 * in the end
 */
async function seeStates(visit: BrowserVisit, path: string, service: Service): Promise<number> {
  const { page } = visit;
  const alerts = page.getByRole('alert').filter({ hasText: 'Der Dienst kann im Moment nicht antworten.' });
  // Of this alert: one that says that there is no such thing offers the same.
  const again = alerts.getByRole('button', { name: 'Noch einmal versuchen' });
  service.fallSilent();
  await visit.goTo(path);
  await visit.shows(page.getByRole('status').filter({ hasText: 'Lädt …' }).first());
  service.goAway();
  // The page asks again by itself before it says so. In small steps: a request without an answer for 30 s of its clock
  // has failed in another way, and to answer takes time that is not the clock's.
  await eventuallyHolds(async () => {
    await page.clock.runFor(500);
    expect(await alerts.count()).toBeGreaterThan(0);
  });
  service.comeBack();
  // What was refused last says so after another one was asked for again: counted once, and not once more later.
  let left = Number.NaN;
  await eventuallyHolds(async () => {
    if ((await alerts.count()) > 0) await again.first().click({ timeout: 5000 });
    left = await alerts.count();
    expect(left).toBe(0);
  });
  return left;
}

/** What is looked at, by who looks, and what is answered at all times. */
const looks = [
  ['owner', ownerScreens, /\/api\/feed/u],
  // Without the overview the pages show the sign-in.
  ['operator', operatorScreens, /\/ops\/api\/(?:feed|overview)/u],
] as const;

inBrowser('every screen of the console', () => {
  setUpOnce(async (stack) => {
    ({ system } = await startScriptedSystem(stack, { uis: 1, crons: 1, env: { OPS_TOKEN: opsToken } }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
    const keys = await system.createTenant('empty');
    const url = system.uiUrls[0] ?? '';
    signedIn['owner'] = await signInOwner(browser, url, keys.admin);
    signedIn['operator'] = await signInOperator(browser, url, opsToken);
  });

  describe.each(looks)('of an %s', (who, screens, passed) => {
    let visit: BrowserVisit;
    let waiting: BrowserVisit;
    let service: Service;

    setUpOnce(async (stack) => {
      visit = stack.use(await begin({ ...signedIn[who] }));
      waiting = stack.use(await begin({ ...signedIn[who], locale: 'de-DE' }));
      await waiting.page.clock.install();
      service = await Service.between(waiting.page, passed);
    });

    it.each(Object.entries(screens).filter(([name]) => !asksNothing.has(name)))(
      'says that it waits for the service, then why nothing comes, and is there once it is asked to try again: %s',
      async (_name, address) => {
        expect(await seeStates(waiting, toPath(address, nothing), service)).toBe(0);
      },
    );

    it.each(Object.entries(screens))(
      'is sound where there is nothing yet, and is walked through by Tab, past the navigation, then to every control: %s',
      async (_name, address) => {
        await openScreen(visit, toPath(address, nothing));
        await expectSoundPage(visit.page);
        expect(await walkByTab(visit.page)).toEqual([]);
      },
    );
  });
});
