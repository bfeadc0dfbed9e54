import { describe, expect, it } from '@jest/globals';
import { say, startScriptedSystem, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { BrowserVisit, expectSoundPage, keepPicture } from './page-checks.ts';

let system: System;
let model: ScriptedModel;
let browser: Browser;
let url: string;
let keys: TenantKeys;
let signedIn: BrowserContextOptions;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

async function call(path: string, { method = 'POST', body }: { readonly method?: string; readonly body?: unknown } = {}): Promise<unknown> {
  const type = typeof body === 'string' ? 'text/plain' : 'application/json';
  const headers = { 'x-api-key': keys.admin, accept: 'application/json', 'content-type': type };
  const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
  const answer = await fetch(`${system.url}${path}`, { method, headers, ...sent });
  const text = await answer.text();
  return text === '' ? undefined : JSON.parse(text);
}

async function signIn(): Promise<BrowserContextOptions> {
  await using visit = await BrowserVisit.begin(browser, url);
  await visit.goTo('/');
  await visit.page.getByLabel('API key').fill(keys.admin);
  await visit.page.getByRole('button', { name: 'Sign in' }).click();
  await visit.shows(visit.page.getByRole('heading', { level: 1, name: 'Today' }));
  return await visit.keepCookies();
}

/** Opens a page, does something there, and looks whether it is sound; answers with what it complains about. */
async function visit(path: string, look: (page: Page) => Promise<void>): Promise<readonly string[]> {
  await using visiting = await BrowserVisit.begin(browser, url, signedIn);
  await visiting.goTo(path);
  await look(visiting.page);
  await expectSoundPage(visiting.page);
  return visiting.complaints.texts;
}

inBrowser('what an owner sees', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack, { uis: 1 }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
    url = system.uiUrls[0] ?? '';
    keys = await system.createTenant('shop');
    signedIn = await signIn();
  });

  it('is the prompt of the next turn, by file', async () => {
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
      await keepPicture(page, 'prompt');
    });
    expect(complaints).toEqual([]);
  });

  it('is a message on a channel that no provider brought, and the answer that no provider gets', async () => {
    await call('/api/channels/telegram', { method: 'PUT', body: { botToken: '7000000001:token', secretToken: 'secret-token' } });
    model.when('Do you ship to Norway', [say('We do, within five days.')]);
    const complaints = await visit('/channels/telegram', async (page) => {
      await page.getByRole('textbox', { name: 'Message' }).fill('Do you ship to Norway?');
      await page.getByRole('button', { name: 'Let it come in' }).click();
      await page.getByText('We do, within five days.').waitFor();
      await page.getByText('This was not sent: the contact is simulated.').waitFor();
      await page.getByText('Waits for the first message').waitFor();
      await keepPicture(page, 'simulate');
    });
    expect(complaints).toEqual([]);
    await eventuallyHolds(async () =>
      expect(await call('/api/deliveries', { method: 'GET' })).toMatchObject([{ to: 'simulated:visitor', state: 'sent' }]),
    );
  });

  it('is the history of a file: by whom, what has changed, and a version to be restored', async () => {
    await call('/api/files/AGENTS.md', { method: 'PUT', body: 'Answer in English.' });
    await call('/api/files/AGENTS.md', { method: 'PUT', body: 'Answer in Latin.' });
    const complaints = await visit('/files?path=AGENTS.md', async (page) => {
      const history = page.getByRole('table', { name: 'History' });
      const row = history.getByRole('row', { name: /Key /u }).nth(1);
      await row.getByRole('button', { name: 'Show changes' }).click();
      await page.getByText('- Answer in English.').waitFor();
      await page.getByText('+ Answer in Latin.').waitFor();
      await keepPicture(page, 'history');
      await row.getByRole('button', { name: 'Restore' }).click();
      await page.getByText('Restored.').waitFor();
      await eventuallyHolds(async () =>
        expect(await page.getByRole('textbox', { name: 'AGENTS.md' }).inputValue()).toBe('Answer in English.'),
      );
    });
    expect(complaints).toEqual([]);
  });

  it('is a schedule made in words, with the runs that follow', async () => {
    const complaints = await visit('/schedules', async (page) => {
      await page.getByText('New schedule').click();
      await page.getByLabel('Name of the schedule').fill('Morning summary');
      await page.getByLabel('What to ask the agent').fill('Summarise what came in since yesterday.');
      await page.getByLabel('At', { exact: true }).fill('09:30');
      await page.getByRole('status').getByText('At 09:30 AM, Monday through Friday (UTC)').waitFor();
      const form = page.locator('form', { has: page.getByLabel('Name of the schedule') });
      await eventuallyHolds(async () => expect(await form.getByRole('listitem').count()).toBe(5));
      await page.getByRole('button', { name: 'Make it' }).click();
      const made = page.getByRole('article', { name: 'Morning summary' });
      await made.waitFor();
      expect(await made.getByRole('listitem').count()).toBe(5);
      await keepPicture(page, 'schedule-form');
    });
    expect(complaints).toEqual([]);
  });

  it('is a page or a conversation, at a few letters after Ctrl-K', async () => {
    model.when('Where is the linen shirt', [say('On its way.')]);
    await call('/api/admin', { body: { message: 'Where is the linen shirt?' } });
    await eventuallyHolds(async () => expect(await call('/api/sessions?q=linen', { method: 'GET' })).toHaveLength(1));
    const complaints = await visit('/', async (page) => {
      const title = (name: string): Promise<void> => page.getByRole('heading', { level: 1, name }).waitFor();
      await title('Today');
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Go to' }).fill('sched');
      await page.keyboard.press('Enter');
      await title('Schedules');
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Go to' }).fill('linen');
      await page.getByRole('option', { name: 'Where is the linen shirt?' }).waitFor();
      await expectSoundPage(page);
      await page.keyboard.press('Enter');
      await page.getByText('On its way.').waitFor();
      await page.goBack();
      await title('Schedules');
    });
    expect(complaints).toEqual([]);
  });

  it('is a key for a model provider and an address for events, set and removed', async () => {
    const complaints = await visit('/settings', async (page) => {
      await page.getByRole('textbox', { name: 'Model provider' }).fill('test');
      await page.getByLabel('Its key').fill('sk-example-0123456789');
      await page
        .locator('form', { has: page.getByLabel('Its key') })
        .getByRole('button', { name: 'Save' })
        .click();
      await page
        .getByRole('table', { name: 'Own keys for models' })
        .getByRole('row', { name: /test … 6789/u })
        .waitFor();
      await page.getByRole('textbox', { name: 'Address for events' }).fill('https://shop.example/hooks');
      await page.getByRole('button', { name: 'Add it' }).click();
      await page.getByText('whsec_').waitFor();
      await page.getByRole('table', { name: 'Webhook events' }).getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('table', { name: 'Webhook events' }).waitFor({ state: 'detached' });
    });
    expect(complaints).toEqual([]);
  });

  it('is a server for tools: attached, asked, and detached', async () => {
    const complaints = await visit('/settings', async (page) => {
      await page.getByRole('textbox', { name: 'Name of the server' }).fill('shop');
      await page.getByRole('textbox', { name: 'Address of the server' }).fill('http://127.0.0.1:1/mcp');
      await page.getByLabel('Authorization header').fill('Bearer example');
      await page.getByRole('button', { name: 'Attach it' }).click();
      const row = page.getByRole('table', { name: 'MCP servers' }).getByRole('row', { name: /shop .*admin/u });
      await row.getByRole('button', { name: 'Ask for its tools' }).click();
      // Of the service's own machine: a tenant reaches nothing there, and is not told what there is.
      const problem = page.locator('p[role=status].text-danger');
      await problem.waitFor();
      expect(await problem.innerText()).toMatch(/^(?!.*ECONNREFUSED)./u);
      await row.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('table', { name: 'MCP servers' }).waitFor({ state: 'detached' });
    });
    expect(complaints).toEqual([]);
  });
});
