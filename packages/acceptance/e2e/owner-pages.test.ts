import { describe, expect, it } from '@jest/globals';
import { say, startScriptedSystem, status, type ScriptedModel, type System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { z } from 'zod';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { BrowserVisit, expectShown, expectSoundPage, keepPicture, listAsked, onPhone, signInOwner } from './page-checks.ts';

let system: System;
let model: ScriptedModel;
let browser: Browser;
let url: string;
/** A tenant with something on every page, and a browser that is signed in as its owner. */
let keys: TenantKeys;
let signedIn: BrowserContextOptions;
let scheduleId: string;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

interface Asked {
  readonly method?: string;
  readonly body?: unknown;
  readonly key?: string;
}

async function call(path: string, { method = 'POST', body, key = keys.admin }: Asked = {}): Promise<unknown> {
  const headers = {
    'x-api-key': key,
    accept: 'application/json',
    'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
  };
  const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
  const answer = await fetch(`${system.url}${path}`, { method, headers, ...sent });
  const text = await answer.text();
  return text === '' ? undefined : JSON.parse(text);
}

function heading(page: Page, name: string): Locator {
  return page.getByRole('heading', { level: 1, name });
}

/**
 * Opens a page, does something there, and looks whether it is sound; on a phone by night where `isPhone`. Answers with
 * what the page complains about, but for what its policy has to refuse: `refused`.
 */
async function visit(
  path: string,
  look: (page: Page) => Promise<void>,
  { isPhone = false, refused }: { readonly isPhone?: boolean; readonly refused?: string } = {},
): Promise<readonly string[]> {
  await using visiting = await BrowserVisit.begin(browser, url, { ...(isPhone && onPhone), ...signedIn });
  await visiting.goTo(path);
  await look(visiting.page);
  await expectSoundPage(visiting.page);
  if (refused !== undefined) visiting.complaints.take(refused);
  return visiting.complaints.texts;
}

const Schedule = z.object({ id: z.string() });
const Replied = z.object({ contact_id: z.string() });

async function fill(): Promise<void> {
  keys = await system.createTenant('shop');
  model.when('This one fails', [status(400)]);
  model.when('Who is it', [say('It is you.')]);
  await call('/api/admin', { body: { message: 'This one fails' } });
  await call('/api/admin', { body: { message: 'Who is it?' } });
  await call('/api/files/memory/recipe.md', { method: 'PUT', body: '# Recipe\n\nTwo spoons of sugar.' });
  // The pages ask once: what they show has to be in the lists, and read by the search, before.
  await eventuallyHolds(async () => expect(await call('/api/turns?status=failed', { method: 'GET' })).toHaveLength(1));
  await eventuallyHolds(async () =>
    expect(await call('/api/memory?q=who', { method: 'GET' })).toMatchObject({ hits: [{ kind: 'session' }] }),
  );
  const schedule = { cron: '0 8 * * 1', timezone: 'Europe/Berlin' };
  ({ id: scheduleId } = Schedule.parse(await call('/api/cron', { body: { name: 'Weekly report', message: 'Report.', schedule } })));
}

inBrowser('the pages of an owner', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack, { uis: 1, crons: 1 }));
    browser = stack.use(await startChromium(chromiumPath ?? ''));
    url = system.uiUrls[0] ?? '';
    await fill();
    signedIn = await signInOwner(browser, url, keys.admin);
  });

  it('show today what failed and what comes next, and each number leads to its list', async () => {
    expect(
      await visit('/', async (page) => {
        await page.getByRole('link', { name: /This one fails/u }).waitFor();
        await page.getByRole('link', { name: /Weekly report/u }).waitFor();
        await page.getByRole('link', { name: /Failed since yesterday 1/u }).click();
        await heading(page, 'Turns').waitFor();
        await page.getByRole('link', { name: 'This one fails' }).waitFor();
        await page.goBack();
        await heading(page, 'Today').waitFor();
        await keepPicture(page, 'today');
      }),
    ).toEqual([]);
  });

  it('show first steps on an empty install', async () => {
    const { admin } = await system.createTenant('empty');
    const empty = await signInOwner(browser, url, admin);
    await using visiting = await BrowserVisit.begin(browser, url, { ...onPhone, ...empty });
    await visiting.goTo('/');
    await visiting.shows(visiting.page.getByRole('link', { name: /Connect a channel open/u }));
    await visiting.shows(visiting.page.getByRole('link', { name: /Write a first skill open/u }));
    await expectSoundPage(visiting.page);
    await visiting.page.getByRole('link', { name: /Write a first skill/u }).click();
    await visiting.shows(heading(visiting.page, 'Files'));
    expect(visiting.complaints.texts).toEqual([]);
  });

  it('narrow the turns, show the life of one and try it again', async () => {
    expect(
      await visit(
        '/turns',
        async (page) => {
          await page.getByRole('link', { name: 'Who is it?' }).waitFor();
          await page.getByLabel('State').selectOption('failed');
          await page.getByRole('link', { name: 'Who is it?' }).waitFor({ state: 'detached' });
          await page.getByRole('link', { name: 'This one fails' }).waitFor();
        },
        { isPhone: true },
      ),
    ).toEqual([]);
    expect(
      await visit('/turns?status=failed', async (page) => {
        await page.getByRole('link', { name: 'This one fails' }).click();
        await page.getByRole('rowheader', { name: /prompt[\s\S]*AGENTS\.md/u }).waitFor();
        await page.getByRole('rowheader', { name: 'saved' }).waitFor();
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
        await page.getByRole('button', { name: 'Copy as text' }).click();
        // Its id, its state, and a line for each span.
        const id = page.url().split('/').at(-1) ?? '';
        await eventuallyHolds(async () => {
          const copied: unknown = await page.evaluate('navigator.clipboard.readText()');
          expect(copied).toContain(id);
          expect(String(copied).split('\n').length).toBeGreaterThan(5);
        });
        await expectSoundPage(page);
        await page.getByRole('button', { name: 'Try again' }).click();
        await page.getByRole('link', { name: 'Open the new turn' }).waitFor();
      }),
    ).toEqual([]);
  });

  it('show a schedule in words, run it and pause it', async () => {
    expect(
      await visit(`/schedules/${scheduleId}`, async (page) => {
        await page.getByText('only on Monday (Europe/Berlin)').waitFor();
        expect(await page.getByRole('article').locator('ol > li').count()).toBe(5);
        await page.getByRole('button', { name: 'Run now' }).click();
        await page.getByText('The run has been accepted.').waitFor();
        await page.getByRole('row').nth(1).waitFor();
        await page.getByRole('button', { name: 'Pause' }).click();
        await page.getByText('paused', { exact: true }).waitFor();
      }),
    ).toEqual([]);
  });

  it('store a file, and keep what was written when another one stored it first', async () => {
    expect(
      await visit(
        '/files?path=memory/recipe.md',
        async (page) => {
          const editor = page.getByRole('textbox', { name: 'memory/recipe.md' });
          await editor.fill('# Recipe\n\nThree spoons of sugar.');
          await page.getByText('not saved').waitFor();
          await page.keyboard.press('Control+s');
          await page.getByText('Saved.').waitFor();
          await call('/api/files/memory/recipe.md', { method: 'PUT', body: 'Other.' });
          await editor.fill('Mine.');
          await page.getByRole('button', { name: 'Save' }).click();
          await page.getByText('was changed elsewhere').waitFor();
          expect(await editor.inputValue()).toBe('Mine.');
          await page.getByRole('button', { name: 'Take the other version' }).click();
          await eventuallyHolds(async () => expect(await editor.inputValue()).toBe('Other.'));
        },
        { isPhone: true },
      ),
    ).toEqual([]);
  });

  it('begin a skill with a template, and say what is wrong with it while it is written', async () => {
    expect(
      await visit('/files', async (page) => {
        await page.getByRole('textbox', { name: 'New file' }).fill('skills/refunds/SKILL.md');
        await page.keyboard.press('Enter');
        const editor = page.getByRole('textbox', { name: 'skills/refunds/SKILL.md' });
        await eventuallyHolds(async () => expect(await editor.inputValue()).toContain('name: refunds'));
        expect(await page.locator('textarea:focus').count()).toBe(1);
        await page.getByRole('status').getByText('It can be used.').waitFor();
        await editor.fill('---\nname: refund\ndescription: Pays back.\n---\n');
        await page.getByText('It could not be used: front matter: the name is refund, the folder is refunds').waitFor();
        await editor.fill('---\nname: refunds\ndescription: Pays back.\n---\n');
        await page.getByRole('status').getByText('It can be used.').waitFor();
        await page.getByRole('button', { name: 'Save' }).click();
        await page.getByText('Saved.').waitFor();
        expect(await call('/api/skills', { method: 'GET' })).toContainEqual(expect.objectContaining({ name: 'refunds' }));
      }),
    ).toEqual([]);
  });

  it('say what is wrong with the front matter of an agent, and what an agent may not do', async () => {
    expect(
      await visit('/files?path=agents/buyer.md', async (page) => {
        await page.getByRole('textbox', { name: 'agents/buyer.md' }).fill('---\ndescripton: Buys\n---\nBuy.');
        await page.getByRole('button', { name: 'Save' }).click();
        await page.getByText('Stored, but it cannot be used:').waitFor();
      }),
    ).toEqual([]);
    expect(
      await visit('/agents', async (page) => {
        await page.getByText(/agents\/buyer\.md: /u).waitFor();
        await page.getByLabel('Tool', { exact: true }).fill('bash');
        await page.getByRole('button', { name: 'Check' }).click();
        await page.getByText('Refused.').waitFor();
        await keepPicture(page, 'agents');
      }),
    ).toEqual([]);
  });

  it('set up a channel in steps', async () => {
    expect(await visit('/channels', async (page) => page.getByRole('link', { name: /Telegram/u }).waitFor(), { isPhone: true })).toEqual(
      [],
    );
    expect(
      await visit('/channels/whatsapp', async (page) => {
        await page.getByText('/webhook/whatsapp/shop').waitFor();
        await page.getByLabel('phoneNumberId').fill('12 34');
        for (const field of ['accessToken', 'verifyToken', 'appSecret']) await page.getByLabel(`${field} (required)`).fill('x');
        await page.getByRole('button', { name: 'Connect', exact: true }).click();
        await page.getByRole('alert').waitFor();
      }),
    ).toEqual([]);
  });

  it('say in German what the service says of agents and channels, and days as a calendar has them', async () => {
    await using visiting = await BrowserVisit.begin(browser, url, { ...signedIn, locale: 'de-DE' });
    const { page } = visiting;
    await visiting.goTo('/agents');
    await visiting.shows(page.getByText('Arbeitet für den Inhaber, mit allen Werkzeugen.'));
    await page.getByLabel('Werkzeug', { exact: true }).fill('bash');
    await page.getByRole('button', { name: 'Prüfen' }).click();
    await visiting.shows(page.getByText('bash ist für Agenten mit dem Zugang admin, den cs nicht hat.'));
    const { contact_id: id } = Replied.parse(await call('/api/cs', { body: { message: 'Is it open?', sender: 'kim' } }));
    await call(`/api/sessions/${id}/handoff`, { body: {} });
    await call(`/api/sessions/${id}/messages`, { body: { message: 'Yes.' } });
    await visiting.goTo('/turns');
    await visiting.shows(page.getByRole('link', { name: '(Mitarbeiter)', exact: true }));
    await visiting.goTo('/usage');
    await visiting.shows(page.getByRole('cell', { name: /^\d\d\.\d\d\.\d{4}$/u }));
    await call(`/api/cron/${scheduleId}/run`, {});
    await visiting.goTo(`/schedules/${scheduleId}`);
    // Of this run, or of one before it, as long as this one has no turn yet.
    const outcomes = page.getByRole('cell').getByRole('link', { name: /^(?:wartet|läuft|fertig)$/u });
    await visiting.shows(outcomes.first());
    await visiting.goTo('/chat');
    const file = { name: 'plan.txt', mimeType: 'text/plain', buffer: Buffer.alloc(1_500_000, 'a') };
    await page.locator('input[type=file]').setInputFiles(file);
    await visiting.shows(page.getByText('1,5 MB'));
    expect(visiting.complaints.texts).toEqual([]);
  });

  it('search the memory and forget a note', async () => {
    expect(
      await visit(
        '/memory',
        async (page) => {
          await page
            .getByRole('row', { name: /recipe/u })
            .getByRole('button', { name: 'Forget' })
            .click();
          await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click();
          await page.getByRole('link', { name: 'memory/recipe.md' }).waitFor({ state: 'detached' });
          await page.getByRole('searchbox').fill('who');
          await page.keyboard.press('Enter');
          await heading(page, 'Memory').waitFor();
          await page.getByRole('link', { name: /Who is it/u }).waitFor();
        },
        { isPhone: true },
      ),
    ).toEqual([]);
  });

  it('show the usage by model', async () => {
    expect(
      await visit('/usage?by=model', async (page) => {
        await page.getByRole('columnheader', { name: 'Model' }).waitFor();
        await page.getByRole('radio', { name: /^30/u, checked: true }).waitFor({ state: 'attached' });
      }),
    ).toEqual([]);
  });

  it('show a new key once, and make the snippet of the widget', async () => {
    expect(
      await visit(
        '/settings',
        async (page) => {
          await page.getByLabel('Label').fill('My shop');
          await page.getByRole('button', { name: 'New key' }).click();
          await page.getByText(/^ck_live_/u).waitFor();
          await page.getByText('My shop').waitFor();
          await page.getByLabel('Sites that may use it').fill('https://shop.example');
          const form = page.locator('form', { has: page.getByLabel('Sites that may use it') });
          await form.getByRole('button', { name: 'Save' }).click();
          await page.getByText(/data-key="ck_pub_shop_/u).waitFor();
          const [download] = await Promise.all([
            page.waitForEvent('download'),
            page.getByRole('button', { name: 'Download the archive' }).click(),
          ]);
          expect(download.suggestedFilename()).toBe('shop.tar.gz');
        },
        { isPhone: true },
      ),
    ).toEqual([]);
  });

  it('are read while the browser takes itself for offline: the service may be on the same machine', async () => {
    expect(
      await visit('/settings', async (page) => {
        await page.getByLabel('Label').waitFor();
        await page.evaluate("dispatchEvent(new Event('offline'))");
        await page.getByLabel('Label').fill('Without a net');
        await page.getByRole('button', { name: 'New key', exact: true }).click();
        await page.getByText('Without a net').waitFor();
        await page.getByRole('link', { name: 'Usage' }).click();
        await page.getByRole('radio', { name: /^30/u, checked: true }).waitFor({ state: 'attached' });
      }),
    ).toEqual([]);
  });

  it('let the owner write on a phone while the preview of the widget follows', async () => {
    expect(
      await visit(
        '/settings',
        async (page) => {
          const frame = page.frameLocator('iframe[title=Preview]');
          const field = page.getByLabel('Heading', { exact: true });
          await frame.getByRole('dialog').waitFor();
          await field.fill('');
          let typed = '';
          for (const letter of 'Ask us') {
            await page.keyboard.type(letter);
            typed += letter;
            // Drawn anew: it could take the next letter.
            await frame.getByRole('dialog', { name: typed.trim(), exact: true }).waitFor();
          }
          expect(await field.inputValue()).toBe('Ask us');
        },
        { isPhone: true },
      ),
    ).toEqual([]);
  });

  it('show the widget as it would be while its settings are changed, in a frame that sends nothing, and store them', async () => {
    await visit(
      '/settings',
      async (page) => {
        const frame = page.frameLocator('iframe[title=Preview]');
        const panel = frame.getByRole('dialog', { name: 'Ask the shop' });
        await page.getByLabel('Heading', { exact: true }).fill('Ask the shop');
        await panel.waitFor();
        const inside = async (expression: string): Promise<unknown> =>
          await page
            .frames()
            .find((one) => one.url().endsWith('/widget-preview.html'))
            ?.evaluate(expression);
        const paper = `getComputedStyle(document.querySelector('concierge-widget').shadowRoot.querySelector('.panel')).backgroundColor`;
        const asked = await listAsked(page);
        await page.getByLabel('Theme').selectOption('dark');
        await eventuallyHolds(async () => expect(await inside(paper)).toBe('rgb(22, 25, 29)'));
        await page.getByRole('group', { name: 'Texts by language' }).getByLabel('Language', { exact: true }).selectOption('de');
        await page.getByLabel('Greeting in this language').fill('Moin!');
        await frame.getByText('Moin!').waitFor();
        await frame.getByLabel('Nachricht').fill('leaves nothing');
        await page.keyboard.press('Enter');
        expect(await inside(`fetch('/api/tenant').then(() => 'sent', () => 'refused')`)).toBe('refused');
        expect(await inside(`(() => { try { return String(localStorage.length); } catch { return 'refused'; } })()`)).toBe('refused');
        expect(asked).toEqual([]);
        await page.getByLabel('Monday', { exact: true }).check();
        await page.getByLabel('Monday, until').fill('12:30');
        await page.getByLabel('Report after so many minutes').fill('15');
        await page.getByLabel('E-mail to').fill('owner@shop.example');
        // Of a cron that has no mail server.
        await page.getByText('No e-mail is sent: the service has no mail server').waitFor();
        const form = page.locator('form', { has: page.getByLabel('Theme') });
        await form.getByRole('button', { name: 'Save' }).click();
        await form.getByText('Saved.').waitFor();
        expect(await call('/api/widget', { method: 'GET' })).toMatchObject({
          appearance: { title: 'Ask the shop' },
          display: { theme: 'dark', texts: { de: { greeting: 'Moin!' } } },
          team: { hours: [{ day: 'mon', from: '09:00', until: '12:30' }], alert: { afterMinutes: 15, email: 'owner@shop.example' } },
        });
      },
      { refused: '/api/tenant' },
    );
  });

  it('say what a retention rule would remove before it is stored', async () => {
    expect(
      await visit('/settings', async (page) => {
        await page.getByText('Everything is kept.').waitFor();
        await page.getByLabel('Conversations', { exact: true }).fill('30');
        await page.getByText('Now this would remove 0 conversations,').waitFor();
        const form = page.locator('form', { has: page.getByLabel('Conversations', { exact: true }) });
        await form.getByRole('button', { name: 'Save' }).click();
        await form.getByText('Saved.').waitFor();
        expect(await call('/api/tenant', { method: 'GET' })).toMatchObject({ retention: { sessionsDays: 30 } });
      }),
    ).toEqual([]);
  });

  it('move by themselves: a conversation that began elsewhere is listed, and one that waits for staff counts in the title', async () => {
    const watched = await system.createTenant('watched');
    const post = async (path: string, body: object): Promise<unknown> => call(path, { body, key: watched.admin });
    await using visiting = await BrowserVisit.begin(browser, url, await signInOwner(browser, url, watched.admin));
    await visiting.goTo('/chat');
    await visiting.shows(visiting.page.getByText('No conversations yet'));
    const contact = { sender: 'bob', channel: 'telegram' };
    const { contact_id: contactId } = Replied.parse(await post('/api/cs', { message: 'Where is my parcel?', ...contact }));
    await visiting.shows(visiting.page.getByRole('link', { name: /^Where is my parcel/u }));
    // Another tab of the same sign-in hears it, too: one of the two reads the feed.
    const tab = await visiting.openTab('/');
    await expectShown(heading(tab, 'Today'));
    await post(`/api/sessions/${contactId}/handoff`, { reason: 'Wants a refund.' });
    await eventuallyHolds(async () => expect(await visiting.page.title()).toMatch(/^\(1\) .+ · Concierge$/u));
    await eventuallyHolds(async () => expect(await tab.title()).toBe('(1) Today · Concierge'));
    await expectShown(tab.getByRole('link', { name: /^Where is my parcel/u }));
    await post(`/api/sessions/${contactId}/resume`, {});
    await eventuallyHolds(async () => expect(await tab.title()).toBe('Today · Concierge'));
  });
});
