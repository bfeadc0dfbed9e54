import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { gate } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Locator, Page } from 'playwright-core';
import { chromiumPath } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { startOwnerSite, type OwnerSite } from './owner-site.ts';

let call: OwnerSite['call'];
let visit: OwnerSite['visit'];
let system: OwnerSite['system'];

const inBrowser = chromiumPath === undefined ? describe.skip : describe;

const store = async (path: string, body: string): Promise<unknown> => call(`/api/files/${path}`, { method: 'PUT', body });
const editor = (page: Page, name: string): Locator => page.getByRole('textbox', { name, exact: true });
const heading = (page: Page, name: string): Locator => page.getByRole('heading', { level: 1, name });

async function openPage(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }).click();
  await heading(page, name).waitFor();
}

async function expectText(page: Page, path: string, text: string): Promise<void> {
  await eventuallyHolds(async () => expect(await editor(page, path).inputValue()).toBe(text));
}

inBrowser('the page of files', () => {
  setUpOnce(async (stack) => {
    ({ call, visit, system } = await startOwnerSite(stack));
  });

  it('shows a file that is opened again as it is stored then, and stores over nothing newer', async () => {
    await store('MEMORY.md', 'Likes tea.');
    const complaints = await visit('/files?path=MEMORY.md', async (page) => {
      await expectText(page, 'MEMORY.md', 'Likes tea.');
      await openPage(page, 'Schedules');
      await store('MEMORY.md', 'Likes coffee.');
      await page.goBack();
      await expectText(page, 'MEMORY.md', 'Likes coffee.');
      // So after a change of one's own, too, whose answer comes when the page is left.
      await editor(page, 'MEMORY.md').fill('Likes water.');
      await page.route('**/api/files/MEMORY.md', async (route) => {
        const response = await route.fetch();
        if (route.request().method() === 'PUT') {
          page.once('dialog', (dialog) => void dialog.accept());
          await openPage(page, 'Schedules');
        }
        await route.fulfill({ response });
      });
      const answered = page.waitForResponse((response) => response.request().method() === 'PUT');
      await page.getByRole('button', { name: 'Save' }).click();
      await (await answered).finished();
      await page.unroute('**/api/files/MEMORY.md');
      await store('MEMORY.md', 'Likes cocoa.');
      await page.goBack();
      await expectText(page, 'MEMORY.md', 'Likes cocoa.');
    });
    expect(complaints).toEqual([]);
  });

  it('does not ask once more by itself for what the user is asking for', async () => {
    const path = 'memory/list.md';
    await store(path, 'One.');
    const complaints = await visit(`/files?path=${path}`, async (page) => {
      await expectText(page, path, 'One.');
      await store(path, 'Two.');
      await editor(page, path).fill('Mine.');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('was changed elsewhere').waitFor();
      const goOn = gate();
      let asked = 0;
      let isAway = true;
      let isReady = false;
      await page.route(/\/readyz$/u, async (route) => (isReady ? route.continue() : route.abort()));
      await page.route(`**/api/files/${path}`, async (route) => {
        if (isAway) return route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"code":"overloaded"}' });
        asked += 1;
        await goOn.opened;
        return route.continue();
      });
      await page.getByRole('button', { name: 'Take the other version' }).click();
      const again = page.getByRole('button', { name: 'Try again' });
      await again.waitFor();
      isAway = false;
      await again.click();
      await eventuallyHolds(async () => Promise.resolve(expect(asked).toBe(1)));
      const looked = page.waitForResponse(/\/readyz$/u);
      isReady = true;
      await looked;
      // Behind it: by then the page has read its answer, and acted on it.
      await page.evaluate("fetch('/readyz').then((answer) => answer.text())");
      goOn.open();
      await again.waitFor({ state: 'detached' });
      expect(asked).toBe(1);
    });
    expect(complaints).toEqual([]);
  });

  it('stores what was written while a text was on its way over that one, once', async () => {
    const path = 'memory/plan.md';
    await store(path, 'One.');
    const complaints = await visit(`/files?path=${path}`, async (page) => {
      await expectText(page, path, 'One.');
      const goOn = gate();
      const sent: (string | null)[] = [];
      await page.route(`**/api/files/${path}`, async (route) => {
        if (route.request().method() === 'PUT') {
          sent.push(route.request().postData());
          await goOn.opened;
        }
        await route.continue();
      });
      const field = editor(page, path);
      await field.fill('Two.');
      await field.press('Control+s');
      await page.getByRole('button', { name: 'Saving' }).waitFor();
      await field.press('Control+s');
      await field.fill('Three.');
      await field.press('Control+s');
      goOn.open();
      await page.getByText('Saved.').waitFor();
      expect(sent).toEqual(['Two.', 'Three.']);
      await page.reload();
      await expectText(page, path, 'Three.');
    });
    expect(complaints).toEqual([]);
  });

  it('lets no file be changed whose bytes are not those of the text that is shown', async () => {
    const { root } = await system.scope('shop');
    await writeFile(join(root, 'prices.csv'), Buffer.from('Müller;1', 'latin1'));
    const complaints = await visit('/files?path=prices.csv', async (page) => {
      await expectText(page, 'prices.csv', 'M\uFFFDller;1');
      await page.getByText('This file is not text in UTF-8').waitFor();
      expect(await editor(page, 'prices.csv').isEditable()).toBe(false);
      expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
      expect(await page.getByRole('button', { name: 'Delete' }).isEnabled()).toBe(true);
    });
    expect(complaints).toEqual([]);
  });

  it('asks at each way out before a text that is not stored is lost', async () => {
    for (const text of ['Be brief.', 'Be kind.']) await store('SOUL.md', text);
    await store('USER.md', 'Ann.');
    const complaints = await visit('/schedules', async (page) => {
      await openPage(page, 'Files');
      await page.getByRole('link', { name: 'SOUL.md', exact: true }).click();
      await expectText(page, 'SOUL.md', 'Be kind.');
      await editor(page, 'SOUL.md').fill('Be bold.');
      const asked: string[] = [];
      let goes = false;
      page.on('dialog', (dialog) => {
        asked.push(dialog.message());
        void (goes ? dialog.accept() : dialog.dismiss());
      });
      const question = 'There are changes that are not saved.';
      const expectAsked = async (way: string): Promise<void> => {
        await eventuallyHolds(async () => expect([way, ...asked]).toEqual([way, question]));
        asked.length = 0;
      };
      const newFile = page.getByRole('textbox', { name: 'New file' });
      const choose = async (words: string): Promise<void> => {
        await page.keyboard.press('Control+k');
        await page.getByRole('combobox', { name: 'Go to' }).fill(words);
        await page.keyboard.press('Enter');
      };
      const ways: Readonly<Record<string, () => Promise<unknown>>> = {
        link: async () => page.getByRole('link', { name: 'Schedules', exact: true }).click(),
        'another file': async () => page.getByRole('link', { name: 'USER.md', exact: true }).click(),
        'Ctrl-K': async () => choose('Schedules'),
        'sign-out by Ctrl-K': async () => choose('Sign out'),
        'sign-out': async () => page.getByRole('button', { name: 'Sign out' }).click(),
        Back: async () => page.evaluate('history.back()'),
        'new file': async () => {
          await newFile.fill('NEW.md');
          await newFile.press('Enter');
        },
        'earlier version': async () => page.getByRole('table', { name: 'History' }).getByRole('button', { name: 'Restore' }).last().click(),
      };
      for (const [way, leave] of Object.entries(ways)) {
        await leave();
        await expectAsked(way);
        // Asked first: the page answers once the question is closed, and has come back by then from where Back had led.
        expect([way, await editor(page, 'SOUL.md').inputValue()]).toEqual([way, 'Be bold.']);
        expect([way, new URL(page.url()).search]).toEqual([way, '?path=SOUL.md']);
      }
      expect(await newFile.inputValue()).toBe('NEW.md');
      goes = true;
      await page.evaluate('history.back()');
      await expectAsked('Back');
      await editor(page, 'SOUL.md').waitFor({ state: 'detached' });
      await page.evaluate('history.forward()');
      await expectText(page, 'SOUL.md', 'Be kind.');
      // Who deletes the file has been asked for its text as well.
      await editor(page, 'SOUL.md').fill('Be bold.');
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
      await editor(page, 'SOUL.md').waitFor({ state: 'detached' });
      expect(asked).toEqual([]);
    });
    expect(complaints).toEqual([]);
  });

  it('keeps what is written while an earlier version is being restored, which is not stored over', async () => {
    const path = 'TOOLS.md';
    for (const text of ['Old.', 'New.']) await store(path, text);
    const complaints = await visit(`/files?path=${path}`, async (page) => {
      await expectText(page, path, 'New.');
      const goOn = gate();
      await page.route('**/api/file-history/**', async (route) => {
        if (route.request().method() === 'POST') await goOn.opened;
        await route.continue();
      });
      const asked = page.waitForRequest((request) => request.url().includes('/api/file-history/') && request.method() === 'POST');
      await page.getByRole('table', { name: 'History' }).getByRole('button', { name: 'Restore' }).nth(1).click();
      await asked;
      await editor(page, path).fill('Mine.');
      const found = page.waitForResponse((response) => response.url().endsWith(`/api/files/${path}`));
      goOn.open();
      await found;
      // Behind it: by then the page has read its answer, and acted on it.
      await page.evaluate("fetch('/readyz').then((answer) => answer.text())");
      await expectText(page, path, 'Mine.');
      const answered = page.waitForResponse((response) => response.request().method() === 'PUT');
      await page.getByRole('button', { name: 'Save' }).click();
      expect((await answered).status()).toBe(412);
      await page.getByRole('button', { name: 'Take the other version' }).click();
      await expectText(page, path, 'Old.');
    });
    expect(complaints).toEqual([]);
  });

  it('stores over nothing that was found by itself since the text was begun, and keeps it where nothing can be had', async () => {
    const path = 'memory/stock.md';
    await store(path, 'One.');
    const complaints = await visit(`/files?path=${path}`, async (page) => {
      await expectText(page, path, 'One.');
      await store(path, 'Two.');
      await editor(page, path).fill('Mine.');
      const save = page.getByRole('button', { name: 'Save' });
      await save.click();
      await page.getByText('was changed elsewhere').waitFor();
      let isAway = true;
      const away = { status: 503, contentType: 'application/problem+json', body: '{"code":"overloaded"}' };
      await page.route(/\/readyz$/u, async (route) => (isAway ? route.abort() : route.continue()));
      await page.route(`**/api/files/${path}`, async (route) => (isAway ? route.fulfill(away) : route.continue()));
      await page.getByRole('button', { name: 'Take the other version' }).click();
      const again = page.getByRole('button', { name: 'Try again' });
      await again.waitFor();
      await expectText(page, path, 'Mine.');
      isAway = false;
      await again.waitFor({ state: 'detached' });
      const answered = page.waitForResponse((response) => response.request().method() === 'PUT');
      await save.click();
      expect((await answered).status()).toBe(412);
      await page.getByRole('button', { name: 'Take the other version' }).click();
      await expectText(page, path, 'Two.');
    });
    expect(complaints).toEqual([]);
  });
});
