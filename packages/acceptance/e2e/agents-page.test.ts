import { describe, expect, it } from '@jest/globals';
import { say, type ScriptedModel } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { chromiumPath } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { BrowserVisit, expectSoundPage, keepPicture } from './page-checks.ts';
import { botToken, startOwnerSite, type OwnerSite } from './owner-site.ts';

let model: ScriptedModel;
let browser: Browser;
let url: string;
let signedIn: BrowserContextOptions;
let call: OwnerSite['call'];
let visit: OwnerSite['visit'];

const secretToken = 'secret-token';

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

inBrowser('the pages of agents', () => {
  setUpOnce(async (stack) => {
    ({ model, browser, url, signedIn, call, visit } = await startOwnerSite(stack));
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

  it('are there by themselves once a service is back that was silent for longer than they try', async () => {
    await using visiting = await BrowserVisit.begin(browser, url, signedIn);
    const { page } = visiting;
    let isAway = true;
    // As over a Redis that does not answer: the connection of the feed stays, and nothing is told over it.
    await page.route(/\/api\/feed$/u, () => undefined);
    await page.route(/\/(?:api\/agents|readyz)$/u, async (route) => {
      if (isAway) await route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"code":"overloaded"}' });
      else await route.continue();
    });
    await page.clock.install();
    await visiting.goTo('/agents');
    const agent = page.getByRole('heading', { level: 2, name: 'admin', exact: true });
    // In small steps: to answer takes time that is not the clock's.
    const until = async (shows: () => Promise<boolean>): Promise<void> =>
      eventuallyHolds(async () => {
        await page.clock.runFor(500);
        expect(await shows()).toBe(true);
      });
    await until(async () => page.getByRole('alert').first().isVisible());
    expect(await agent.count()).toBe(0);
    isAway = false;
    // Other requests of the page may have been given up, too: its clock runs faster than a slow machine answers.
    await until(async () => (await agent.isVisible()) && (await page.getByRole('alert').count()) === 0);
  });
});
