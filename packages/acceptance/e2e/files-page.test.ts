import { describe, expect, it } from '@jest/globals';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Locator, Page } from 'playwright-core';
import { chromiumPath } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { startOwnerSite, type OwnerSite } from './owner-site.ts';

let call: OwnerSite['call'];
let visit: OwnerSite['visit'];

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
    ({ call, visit } = await startOwnerSite(stack));
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
});
