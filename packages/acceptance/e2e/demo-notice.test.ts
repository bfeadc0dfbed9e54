import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { System } from '@concierge/testing';
import type { Browser } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { ConsolePage } from './console-page.ts';

let system: System;
let browser: Browser;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

inBrowser('the console without a model provider', () => {
  beforeAll(async () => {
    // No such file: nothing names a key.
    system = await System.start({ modelUrl: 'http://127.0.0.1:1/v1', uis: 1, env: { PROVIDERS_FILE: '/nonexistent/providers.json' } });
    browser = await startChromium(chromiumPath ?? '');
  });
  afterAll(async () => {
    await browser.close();
    await system[Symbol.asyncDispose]();
  });

  it('says before the first message that the demo model answers', async () => {
    const keys = await system.createTenant('acme');
    await using visit = await ConsolePage.open(browser, system.uiUrls[0] ?? '');
    await visit.enter(keys.admin);
    const notice = visit.page.getByText('The built-in demo model answers');
    await notice.waitFor();
    expect(await notice.textContent()).toContain('providers.json');
  });
});
