import { describe, expect, it } from '@jest/globals';
import { botError, type FakeTelegram, gate, say, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Locator } from 'playwright-core';
import { z } from 'zod';
import { chromiumPath } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { BrowserVisit, expectSoundPage, keepPicture, onPhone, signInOwner } from './page-checks.ts';
import { botToken, startOwnerSite, type OwnerSite } from './owner-site.ts';

let system: System;
let model: ScriptedModel;
let browser: Browser;
let url: string;
let telegram: FakeTelegram;
let keys: TenantKeys;
let signedIn: BrowserContextOptions;
let call: OwnerSite['call'];
let visit: OwnerSite['visit'];

const Made = z.object({ id: z.string() });
const secretToken = 'secret-token';

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

inBrowser('what an owner sees', () => {
  setUpOnce(async (stack) => {
    ({ system, model, telegram, browser, url, keys, signedIn, call, visit } = await startOwnerSite(stack));
  });

  it('is no figure before it is known, none where it cannot be had, and the figure when it can', async () => {
    await using visiting = await BrowserVisit.begin(browser, url, signedIn);
    const { page } = visiting;
    const refused = gate();
    const lists = /\/api\/(?:channels|handoffs|turns|usage)(?:\?|$)/u;
    await page.route(lists, async (route) => {
      await refused.opened;
      await route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"code":"overloaded"}' });
    });
    // They would have the page ask again by itself, and take the buttons away that are pressed below.
    await page.route(/\/(?:api\/feed|readyz)$/u, () => undefined);
    const tiles = async (said: string): Promise<void> => {
      for (const label of ['Wait for staff', 'Failed since yesterday', 'Cost this month', 'Channels with problems'])
        await visiting.shows(page.getByRole('link', { name: `${label} ${said}`, exact: true }));
    };
    await visiting.goTo('/');
    await tiles('–');
    refused.open();
    await tiles('– not known');
    await expectSoundPage(page);
    await page.unroute(lists);
    for (const section of ['Conversations that wait for staff', 'Failed turns', 'Channels']) {
      const part = page.locator('section', { has: page.getByRole('heading', { name: section, exact: true }) });
      await part.getByRole('button', { name: 'Try again' }).click();
      await part.getByRole('alert').waitFor({ state: 'detached' });
    }
    await visiting.shows(page.getByRole('link', { name: 'Wait for staff 0', exact: true }));
    await visiting.shows(page.getByRole('link', { name: 'Channels with problems 0', exact: true }));
    expect(visiting.complaints.texts).toEqual([]);
  });

  it('is the life of a turn behind its reply in the chat, but for a key that has the chat alone', async () => {
    model.when('Where do replies come from', [say('From here.')]);
    const asked = 'Where do replies come from?';
    const complaints = await visit('/chat', async (page) => {
      await page.getByLabel('Message', { exact: true }).fill(asked);
      await page.keyboard.press('Enter');
      await page.getByText('From here.', { exact: true }).waitFor();
      await page.getByRole('article', { name: 'Turn' }).getByRole('link', { name: 'Life of this turn' }).click();
      await page.getByRole('heading', { level: 1, name: 'Life of a turn' }).waitFor();
      await page.getByText(asked).first().waitFor();
      await page.goBack();
      await page.reload();
      await page.getByRole('link', { name: 'Life of this turn' }).waitFor();
    });
    expect(complaints).toEqual([]);
    await using visiting = await BrowserVisit.begin(browser, url);
    const { page } = visiting;
    await visiting.goTo('/chat');
    await page.getByLabel('API key').fill(keys.cs);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('Message', { exact: true }).fill(asked);
    await page.keyboard.press('Enter');
    await visiting.shows(page.getByRole('button', { name: 'Copy reply' }));
    expect(await page.getByRole('link', { name: 'Life of this turn' }).count()).toBe(0);
  });

  it('is a message on a channel that no provider brought, and the answer that no provider gets', async () => {
    await call('/api/channels/telegram', { method: 'PUT', body: { botToken, secretToken } });
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

  it('is a channel that is connected in four steps, how it does, and what has not arrived, which is sent again', async () => {
    const wizard = await system.createTenant('wizard');
    await using visiting = await BrowserVisit.begin(browser, url, await signInOwner(browser, url, wizard.admin));
    const { page } = visiting;
    await visiting.goTo('/channels/telegram');
    await visiting.shows(page.getByText('Connect it first.').first());
    await page.getByLabel('botToken (required)').fill(botToken);
    await page.getByLabel(/^secretToken/u).fill(secretToken);
    await page.getByRole('button', { name: 'Connect', exact: true }).click();
    await visiting.shows(page.getByRole('status').getByText('connected', { exact: true }));
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await visiting.shows(page.locator('.text-ok').getByText('Connection: It is enabled.'));
    await visiting.shows(page.locator('.text-ok').getByText(/^Credentials: /u));
    await visiting.shows(page.getByText('Waits for the first message'));

    const webhook = JSON.stringify({ url: `${system.url}/webhook/telegram/wizard`, secret_token: secretToken });
    await fetch(`${telegram.url}/bot${botToken}/setWebhook`, { method: 'POST', body: webhook });
    model.when('Is it mended', [say('It is.')]);
    telegram.failSends(botError(403, 'Forbidden: bot was blocked by the user'));
    const person = { id: 55, first_name: 'Ann' };
    const message = {
      message_id: 1,
      from: { ...person, is_bot: false },
      chat: { ...person, type: 'private' },
      date: Math.floor(Date.now() / 1000),
    };
    await telegram.deliver(55, { update_id: 1, message: { ...message, text: 'Is it mended?' } });
    await visiting.shows(page.getByText('The first message has come in.'));
    const row = page.getByRole('table', { name: 'Messages that have not arrived' }).getByRole('row', { name: /It is\. .*blocked/u });
    await visiting.shows(row);
    const { channels } = await system.scope(wizard.tenantId);
    // The worker notes why a message has failed after the message's state; what is noted last is shown.
    await eventuallyHolds(async () => expect((await channels.find('channel_c'))?.lastError ?? null).not.toBeNull());
    await channels.noteError('channel_c', { code: '429', message: 'Too many requests' });
    await page.reload();
    await visiting.shows(page.getByText('Last error: Too many requests'));
    await expectSoundPage(page);
    const before = telegram.sent.length;
    await row.getByRole('button', { name: 'Send again' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
    await visiting.shows(page.getByText('Of this channel there is none with the state: failed.'));
    await eventuallyHolds(async () => expect(telegram.sent.slice(before)).toMatchObject([{ chat_id: 55, text: 'It is.' }]));
    expect(visiting.complaints.texts).toEqual([]);
  });

  it('is a note about a contact, which is forgotten alone', async () => {
    const { memory } = await system.scope(keys.tenantId);
    await memory.forContact('ann').write({ text: 'Likes green tea.' });
    await memory.forContact('ann').write({ text: 'Lives in Oslo.', title: 'Address' });
    const complaints = await visit('/memory', async (page) => {
      const note = (ref: string): Locator => page.locator('summary', { hasText: ref });
      await note('memory/address.md').click();
      await page.getByText('Lives in Oslo.').waitFor();
      await expectSoundPage(page);
      await page.getByRole('button', { name: 'Forget this note' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Forget', exact: true }).click();
      await note('memory/address.md').waitFor({ state: 'detached' });
      await note('MEMORY.md').click();
      await page.getByText('Likes green tea.').waitFor();
    });
    expect(complaints).toEqual([]);
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

  it('are the skills, with what is wrong with one, which is mended in its file, and a new one', async () => {
    const usable = '---\nname: refunds\ndescription: Pays money back.\ntrigger: refund\n---\n\n1. Ask for the order.\n';
    await call('/api/files/skills/refunds/SKILL.md', { method: 'PUT', body: usable });
    await call('/api/files/skills/returns/SKILL.md', { method: 'PUT', body: usable });
    await call('/api/files/skills/empty/notes.md', { method: 'PUT', body: 'Nothing yet.' });
    const complaints = await visit('/', async (page) => {
      const skill = (name: string): Locator => page.getByRole('article', { name, exact: true });
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Skills' }).click();
      await skill('refunds').getByText('Called for by: refund').waitFor();
      await skill('empty').getByText('It has no SKILL.md.').waitFor();
      await skill('returns').getByText('front matter: the name is refunds, the folder is returns').waitFor();
      await expectSoundPage(page);
      await skill('returns').getByRole('link').click();
      await page.getByRole('textbox', { name: 'skills/returns/SKILL.md' }).fill(usable.replace('refunds', 'returns'));
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Saved.').waitFor();
      await page.getByRole('link', { name: 'Skills', exact: true }).click();
      await skill('returns').getByText('Pays money back.').waitFor();
      expect(await skill('returns').getByText('cannot be used').count()).toBe(0);
      await page.getByLabel('Name of a new skill').fill('greetings');
      await page.keyboard.press('Enter');
      await page.getByRole('textbox', { name: 'skills/greetings/SKILL.md' }).waitFor();
    });
    expect(complaints).toEqual([]);
  });

  it('is a schedule made in words, with the runs that follow, and deleted', async () => {
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
      await made.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
      await made.waitFor({ state: 'detached' });
    });
    expect(complaints).toEqual([]);
  });

  it('is a schedule in the zone of the account, which was not known yet when its fields were written', async () => {
    await call('/api/tenant', { method: 'PATCH', body: { timezone: 'Europe/Berlin' } });
    const complaints = await visit('/schedules', async (page) => {
      const written = gate();
      await page.route('**/api/whoami', async (route) => {
        await written.opened;
        await route.continue();
      });
      await page.reload();
      await page.getByText('New schedule').click();
      await page.getByLabel('Name of the schedule').fill('Evening summary');
      await page.getByLabel('What to ask the agent').fill('Summarise the day.');
      expect(await page.getByRole('button', { name: 'Make it' }).isDisabled()).toBe(true);
      written.open();
      await page.getByRole('status').getByText('(Europe/Berlin)').waitFor();
      // The next one is begun before the list has this one.
      const listed = gate();
      await page.route('**/api/cron', async (route) => {
        if (route.request().method() === 'GET') await listed.opened;
        await route.continue().catch(() => undefined);
      });
      const made = page.waitForResponse((response) => response.request().method() === 'POST' && response.url().endsWith('/api/cron'));
      await page.getByRole('button', { name: 'Make it' }).click();
      await made;
      await page.getByLabel('Name of the schedule').fill('Night summary');
      await page.getByLabel('At', { exact: true }).fill('23:00');
      listed.open();
      await page.getByRole('article', { name: 'Evening summary' }).waitFor();
      await eventuallyHolds(async () => expect(await page.getByLabel('What to ask the agent').inputValue()).toBe(''));
      expect(await page.getByLabel('Name of the schedule').inputValue()).toBe('Night summary');
      expect(await page.getByLabel('At', { exact: true }).inputValue()).toBe('23:00');
    });
    expect(complaints).toEqual([]);
    const made = { name: 'Evening summary', schedule: { cron: '0 8 * * 1-5', timezone: 'Europe/Berlin' } };
    expect(await call('/api/cron', { method: 'GET' })).toContainEqual(expect.objectContaining(made));
    await call('/api/tenant', { method: 'PATCH', body: { timezone: null } });
  });

  it('is a schedule that is edited by keyboard, without what the form does not show being lost', async () => {
    const schedule = { cron: '0 8 * * 1', timezone: 'Europe/Berlin' };
    const asked = { name: 'Weekly report', message: 'Report.\nBriefly.', schedule, missed: 'skip', jitterSeconds: 30 };
    const { id } = Made.parse(await call('/api/cron', { body: asked }));
    const complaints = await visit('/schedules', async (page) => {
      await page.getByRole('article', { name: 'Weekly report' }).getByRole('button', { name: 'Edit' }).focus();
      await page.keyboard.press('Enter');
      const dialog = page.getByRole('dialog', { name: 'Edit Weekly report' });
      const name = dialog.getByLabel('Name of the schedule');
      await dialog.locator(':focus').waitFor();
      expect(await name.inputValue()).toBe('Weekly report');
      expect(await dialog.getByLabel('What to ask the agent').inputValue()).toBe('Report.\nBriefly.');
      expect(await dialog.getByLabel('How often').inputValue()).toBe('weekly');
      expect(await dialog.getByLabel('At', { exact: true }).inputValue()).toBe('08:00');
      await dialog.getByText('What has no field here stays as it is').waitFor();
      await page.keyboard.press('Control+a');
      await page.keyboard.type('Monday report');
      await dialog.getByLabel('At', { exact: true }).fill('09:30');
      await eventuallyHolds(async () => expect(await dialog.getByRole('listitem').count()).toBe(5));
      await expectSoundPage(page);
      await keepPicture(page, 'schedule-edit');
      await name.press('Enter');
      const edited = page.getByRole('article', { name: 'Monday report' });
      await edited.getByText('At 09:30 AM, only on Monday (Europe/Berlin)').waitFor();
      await edited.getByText('Saved.').waitFor();
      expect(await page.getByRole('dialog').count()).toBe(0);
      await edited.locator(':focus').waitFor();
      expect(await edited.locator(':focus').textContent()).toBe('Edit');
    });
    expect(complaints).toEqual([]);
    const edited = { ...asked, name: 'Monday report', schedule: { ...schedule, cron: '30 9 * * 1' } };
    expect(await call(`/api/cron/${id}`, { method: 'GET' })).toMatchObject(edited);
  });

  it('is a schedule of another kind than the form has, which keeps it and says so, on a phone', async () => {
    const asked = { name: 'Hourly look', message: 'Look.', schedule: { every: '1h' } };
    const { id } = Made.parse(await call('/api/cron', { body: asked }));
    await using visiting = await BrowserVisit.begin(browser, url, { ...signedIn, ...onPhone });
    await visiting.goTo('/schedules');
    const { page } = visiting;
    await page.getByRole('article', { name: 'Hourly look' }).getByRole('button', { name: 'Edit' }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit Hourly look' });
    await visiting.shows(dialog.getByText('There is no field here for when it runs, which stays as it is: every 1h.'));
    expect(await dialog.getByLabel('How often').count()).toBe(0);
    await expectSoundPage(page);
    await dialog.getByLabel('What to ask the agent').fill('Look again.');
    await dialog.getByRole('button', { name: 'Save' }).click();
    // The dialog is within the article, and its field has these words from the beginning.
    await dialog.waitFor({ state: 'detached' });
    await visiting.shows(page.getByRole('article', { name: 'Hourly look' }).getByText('Look again.'));
    await expectSoundPage(page);
    expect(visiting.complaints.texts).toEqual([]);
    expect(await call(`/api/cron/${id}`, { method: 'GET' })).toMatchObject({ ...asked, message: 'Look again.' });
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

  it('is an action after Ctrl-K: a new conversation, a new schedule, other colours, and the sign-out', async () => {
    const complaints = await visit('/', async (page) => {
      const choose = async (words: string): Promise<void> => {
        await page.keyboard.press('Control+k');
        await page.getByRole('combobox', { name: 'Go to' }).fill(words);
        await page.keyboard.press('Enter');
      };
      await page.getByRole('heading', { level: 1, name: 'Today' }).waitFor();
      await choose('new sched');
      await page
        .locator(':focus')
        .and(page.getByRole('textbox', { name: 'Name' }))
        .waitFor();
      await choose('new conv');
      await page.getByRole('heading', { name: 'Talk to your agent' }).waitFor();
      await page.emulateMedia({ colorScheme: 'light' });
      await page.locator('html[data-theme=light][data-chosen-theme=system]').waitFor();
      await choose('colours');
      await choose('colours');
      await page.locator('html[data-theme=dark][data-chosen-theme=dark]').waitFor();
      await page.goto(new URL('/operate', page.url()).href);
      await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
      await choose('colours');
      await page.locator('html[data-chosen-theme=system]').waitFor();
      await page.goto(new URL('/', page.url()).href);
      await page.getByRole('heading', { level: 1, name: 'Today' }).waitFor();
      await choose('sign out');
      await page.getByLabel('API key').waitFor();
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
