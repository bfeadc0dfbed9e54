import { describe, expect, it } from '@jest/globals';
import { System } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { ConsolePage } from './console-page.ts';

let system: System;
let browser: Browser;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

inBrowser('the console without a model provider', () => {
  setUpOnce(async (stack) => {
    // No such file: nothing names a key.
    system = stack.use(
      await System.start({ modelUrl: 'http://127.0.0.1:1/v1', uis: 1, env: { PROVIDERS_FILE: '/nonexistent/providers.json' } }),
    );
    browser = stack.use(await startChromium(chromiumPath ?? ''));
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
