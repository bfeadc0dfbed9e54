import { describe, expect, it } from '@jest/globals';
import { FakeTelegram, say, startScriptedSystem, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { BrowserVisit, expectSoundPage, keepPicture, signInOwner } from './page-checks.ts';

let system: System;
let model: ScriptedModel;
let browser: Browser;
let url: string;
let telegram: FakeTelegram;
let keys: TenantKeys;
let signedIn: BrowserContextOptions;

const botToken = '7000000001:token';
const secretToken = 'secret-token';

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

async function call(path: string, { method = 'POST', body }: { readonly method?: string; readonly body?: unknown } = {}): Promise<unknown> {
  const type = typeof body === 'string' ? 'text/plain' : 'application/json';
  const headers = { 'x-api-key': keys.admin, accept: 'application/json', 'content-type': type };
  const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
  const answer = await fetch(`${system.url}${path}`, { method, headers, ...sent });
  const text = await answer.text();
  return text === '' ? undefined : JSON.parse(text);
}

/** Opens a page, does something there, and looks whether it is sound; answers with what it complains about. */
async function visit(path: string, look: (page: Page) => Promise<void>): Promise<readonly string[]> {
  await using visiting = await BrowserVisit.begin(browser, url, signedIn);
  await visiting.goTo(path);
  await look(visiting.page);
  await expectSoundPage(visiting.page);
  return visiting.complaints.texts;
}

inBrowser('the pages of agents', () => {
  setUpOnce(async (stack) => {
    telegram = stack.use(await new FakeTelegram({ botToken }).start());
    ({ system, model } = await startScriptedSystem(stack, { uis: 1, env: { TELEGRAM_API_URL: telegram.url } }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
    url = system.uiUrls[0] ?? '';
    keys = await system.createTenant('shop');
    signedIn = await signInOwner(browser, url, keys.admin);
  });

  it('show the prompt of the next turn, by file, with what has changed since the last one', async () => {
    await call('/api/files/SOUL.md', { method: 'PUT', body: 'Be brief.' });
    model.when('How are you', [say('Fine.')]);
    await call('/api/admin', { body: { message: 'How are you?' } });
    await eventuallyHolds(async () => expect(await call('/api/sessions', { method: 'GET' })).toHaveLength(1));
    await call('/api/files/SOUL.md', { method: 'PUT', body: 'Be brief, and friendly.' });
    const complaints = await visit('/agents', async (page) => {
      const prompt = page.getByRole('table', { name: 'What the model will see' });
      await prompt.getByRole('link', { name: 'SOUL.md' }).waitFor();
      await page.getByLabel('Conversation').selectOption({ label: 'How are you?' });
      await prompt.getByRole('row', { name: /SOUL\.md.* changed/u }).waitFor();
      await page.getByRole('link', { name: 'The last turn' }).waitFor();
      await prompt
        .getByRole('row', { name: /SOUL\.md/u })
        .getByRole('button', { name: 'Show changes' })
        .press('Enter');
      const diff = page.getByRole('region', { name: 'Changes of SOUL.md since the last turn' });
      await diff.getByText('- Be brief.', { exact: true }).waitFor();
      await diff.getByText('+ Be brief, and friendly.', { exact: true }).waitFor();
      await keepPicture(page, 'prompt');
    });
    expect(complaints).toEqual([]);
  });

  it('say in German what is wrong with a file, and with a channel', async () => {
    await call('/api/files/agents/kaputt.md', { method: 'PUT', body: '---\nmodell: a/b\n---\nHilf.' });
    await call('/api/channels/telegram', { method: 'PUT', body: { botToken, secretToken } });
    await using visiting = await BrowserVisit.begin(browser, url, { ...signedIn, locale: 'de-DE' });
    const { page } = visiting;
    const said = ['description fehlt oder ist nicht vom Typ string.', 'front matter hat unbekannte Felder: modell.'];
    await visiting.goTo('/agents');
    for (const text of said) await visiting.shows(page.getByText(text));
    await visiting.goTo('/files?path=agents%2Fkaputt.md');
    await page.getByLabel('agents/kaputt.md', { exact: true }).fill('---\nmodell: a/c\n---\nHilf.');
    for (const text of said) await visiting.shows(page.getByText(text));
    await page.getByLabel('agents/kaputt.md', { exact: true }).fill('---\nmodell: a/b\n---\nHilf.');
    await visiting.goTo('/channels/telegram');
    await page.getByRole('button', { name: 'Prüfen', exact: true }).click();
    await visiting.shows(page.getByText('Verbindung: Er ist verbunden.'));
    await visiting.shows(page.getByText(/^Webhook: Der Anbieter bringt Nachrichten nirgendwohin\./u));
    expect(await page.locator('main [lang="en"]').count()).toBe(0);
    await expectSoundPage(page);
    expect(visiting.complaints.texts).toEqual([]);
  });
});
