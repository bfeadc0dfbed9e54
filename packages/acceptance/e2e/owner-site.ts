import { FakeTelegram, startScriptedSystem, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { BrowserVisit, expectSoundPage, signInOwner } from './page-checks.ts';

/** What the fake Telegram of an `OwnerSite` takes. */
export const botToken = '7000000001:token';

interface Asked {
  readonly method?: string;
  /** A string is sent as it is. */
  readonly body?: unknown;
}

/** The console of an owner who is signed in, over a system with a scripted model and a fake Telegram. */
export interface OwnerSite {
  readonly system: System;
  readonly model: ScriptedModel;
  readonly telegram: FakeTelegram;
  readonly browser: Browser;
  readonly url: string;
  readonly keys: TenantKeys;
  readonly signedIn: BrowserContextOptions;
  /** Asks the API as the owner; answers with the JSON, or undefined where there is none. */
  readonly call: (path: string, asked?: Asked) => Promise<unknown>;
  /** Opens a page, does something there, and looks whether it is sound; answers with what it complains about. */
  readonly visit: (path: string, look: (page: Page) => Promise<void>) => Promise<readonly string[]>;
}

export async function startOwnerSite(stack: AsyncDisposableStack): Promise<OwnerSite> {
  const telegram = stack.use(await new FakeTelegram({ botToken }).start());
  const { system, model } = await startScriptedSystem(stack, { uis: 1, env: { TELEGRAM_API_URL: telegram.url } });
  const browser = stack.use(await startChromium(chromiumPath ?? ''));
  const url = system.uiUrls[0] ?? '';
  const keys = await system.createTenant('shop');
  const signedIn = await signInOwner(browser, url, keys.admin);
  const call = async (path: string, { method = 'POST', body }: Asked = {}): Promise<unknown> => {
    const type = typeof body === 'string' ? 'text/plain' : 'application/json';
    const headers = { 'x-api-key': keys.admin, accept: 'application/json', 'content-type': type };
    const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
    const answer = await fetch(`${system.url}${path}`, { method, headers, ...sent });
    const text = await answer.text();
    return text === '' ? undefined : JSON.parse(text);
  };
  const visit: OwnerSite['visit'] = async (path, look) => {
    await using visiting = await BrowserVisit.begin(browser, url, signedIn);
    await visiting.goTo(path);
    await look(visiting.page);
    await expectSoundPage(visiting.page);
    return visiting.complaints.texts;
  };
  return { system, model, telegram, browser, url, keys, signedIn, call, visit };
}
