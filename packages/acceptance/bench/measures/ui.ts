import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Session } from '@concierge/contract';
import { startScriptedSystem } from '@concierge/testing';
import type { Browser, Page } from 'playwright-core';
import { chromiumPath, startChromium } from '../../e2e/chromium.ts';
import { percentile } from '../bench.ts';
import { absoluteRow, type Row } from '../row.ts';

const built = join(import.meta.dirname, '../../../../services/ui/dist/web');
const VISITS = 7;
const TURNS = 500;
const KEYS = 60;

/** The console in Debian's Chromium: what a first visit loads, when it paints, and a long conversation. */
export async function measureUi(): Promise<Row[]> {
  if (chromiumPath === undefined) throw new Error('there is no Chromium');
  await using stack = new AsyncDisposableStack();
  const { system } = await startScriptedSystem(stack, { uis: 1, env: { SANDBOX: 'off' } });
  const [url = ''] = system.uiUrls;
  const browser = stack.adopt(await startChromium(chromiumPath), async (opened) => opened.close());
  const { admin, tenantId } = await system.createTenant('bench-ui');
  const paints: number[] = [];
  for (let visit = 0; visit < VISITS; visit += 1) paints.push(await timeFirstPaint(browser, url));
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(`${url}/chat`);
  await page.getByLabel('API key').fill(admin);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Message', { exact: true }).fill('the first [[say:reply first]]');
  await page.keyboard.press('Enter');
  await page.locator('article[data-turn=done]').waitFor();
  const { sessions } = await system.scope(tenantId);
  const session = await sessions.load(new URL(page.url()).pathname.split('/').at(-1) ?? '');
  if (session === undefined) throw new Error('there is no conversation');
  await sessions.publish(lengthen(session));
  const openSeconds = await countTaskSeconds(page, async () => {
    await page.reload();
    await page.getByText(`answer ${String(TURNS - 1)}`).waitFor();
  });
  const keys = await timeKeys(page);
  const messages = (2 * TURNS).toLocaleString('en');
  return [
    absoluteRow({ measure: 'scripts and styles of a first visit, gzipped', unit: 'kB', product: await sumFirstLoad() }, { atMost: 180 }),
    absoluteRow({ measure: 'first contentful paint, p50', unit: 'ms', product: percentile(sort(paints), 0.5) }, { atMost: 1000 }),
    absoluteRow({ measure: `opening ${messages} messages, main thread`, unit: 's', product: openSeconds }, { atMost: 1 }),
    absoluteRow({ measure: `a keystroke beside ${messages} messages, p50`, unit: 'ms', product: percentile(keys, 0.5) }, { atMost: 10 }),
  ];
}

/** What the page itself names: all else is loaded when it is shown. */
async function sumFirstLoad(): Promise<number> {
  const page = await readFile(join(built, 'index.html'), 'utf8');
  const names = new Set(Array.from(page.matchAll(/\/(assets\/[^"]+\.(?:js|css))"/gu), ([, name = '']) => name));
  const sizes = await Promise.all(Array.from(names, async (name) => (await stat(join(built, `${name}.gz`))).size));
  return sizes.reduce((sum, size) => sum + size, 0) / 1000;
}

/** In a browser that has nothing of the console yet. */
async function timeFirstPaint(browser: Browser, url: string): Promise<number> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`${url}/chat`);
    await page.getByLabel('API key').waitFor();
    return await page.evaluate<number>("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity");
  } finally {
    await context.close();
  }
}

function lengthen(session: Session): Session {
  const at = new Date().toISOString();
  const messages = Array.from({ length: TURNS }, (_, index): Session['messages'] => {
    const turnId = `old-${String(index)}`;
    const text = `question ${String(index)}`;
    return [
      { id: `${turnId}-u`, turnId, at, role: 'user', text, sent: text },
      { id: `${turnId}-a`, turnId, at, role: 'assistant', text: `**answer** ${String(index)}\n\n- one\n- two` },
    ];
  }).flat();
  return { ...session, revision: session.revision + 1, messages, messageCount: messages.length };
}

/** How long the page's main thread was at work. */
async function countTaskSeconds(page: Page, work: () => Promise<void>): Promise<number> {
  const client = await page.context().newCDPSession(page);
  await client.send('Performance.enable');
  const read = async (): Promise<number> => {
    const { metrics } = await client.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0;
  };
  const before = await read();
  await work();
  return (await read()) - before;
}

async function timeKeys(page: Page): Promise<number[]> {
  const times = await page.getByLabel('Message', { exact: true }).evaluate((area, count) => {
    area.focus();
    return Array.from({ length: count }, () => {
      const from = performance.now();
      area.ownerDocument.execCommand('insertText', false, 'x'); // eslint-disable-line typescript/no-deprecated -- types as a key does
      return performance.now() - from;
    });
  }, KEYS);
  return sort(times);
}

function sort(times: readonly number[]): number[] {
  return times.toSorted((one, other) => one - other);
}
