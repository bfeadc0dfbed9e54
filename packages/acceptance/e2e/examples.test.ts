import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { canRun, eventually, FakeMeta, System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { chromiumPath, startChromium } from './chromium.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
/** As the example writes them where nothing else is set. */
const whatsapp = { phoneNumberId: '106540352242922', accessToken: 'example-access-token', appSecret: 'example-app-secret' };

let meta: FakeMeta;
let system: System;
let keys: TenantKeys;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;
const inPython = canRun(['python3', '-c', 'import requests'], 'no Python with requests (apt install python3-requests)')
  ? describe
  : describe.skip;

/** One command of examples/README.md, as it stands there but for `npx`, which finds the same Node. */
function start(command: string): ReturnType<typeof spawn> {
  const [program = '', ...args] = command.split(' ');
  // eslint-disable-next-line node/no-process-env -- Python and its packages are where the machine has them
  const env = { ...process.env, CONCIERGE_URL: system.url, CONCIERGE_KEY: keys.admin, PORT: '0' };
  return spawn(program === 'node' ? process.execPath : program, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** What it prints to its end. */
async function run(command: string): Promise<string> {
  const child = start(command);
  let printed = '';
  for (const output of [child.stdout, child.stderr]) output?.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const [code]: unknown[] = await once(child, 'close');
  if (code !== 0) throw new Error(`${command} ended with ${String(code)}:\n${printed}`);
  return printed;
}

describe('an example', () => {
  setUpOnce(async (stack) => {
    meta = stack.use(await new FakeMeta({ ...whatsapp, pageId: '1' }).start());
    // No such file: nothing names a key, the demo model answers.
    const env = { PROVIDERS_FILE: '/nonexistent/providers.json', META_GRAPH_URL: meta.url };
    system = stack.use(await System.start({ modelUrl: 'http://127.0.0.1:1/v1', crons: 1, env }));
    keys = await system.createTenant('acme');
  });

  it('streams with the client of this repository', async () => {
    expect(await run('node --conditions=@concierge/source examples/node-client.ts')).toContain('Demo model');
  });

  it('streams with the openai package', async () => {
    expect(await run('node examples/openai-sdk.ts')).toContain('Demo model');
  });

  inPython('in Python', () => {
    it('streams with requests', async () => {
      expect(await run('python3 examples/python_requests.py')).toContain('Demo model');
    });
  });

  it('brings a signed webhook, whose answer goes to the customer', async () => {
    meta.personWrites('491510000001');
    const printed = await run('node --conditions=@concierge/source examples/whatsapp-webhook.ts');
    expect(printed).toContain('answered with 200');
    expect(printed).toContain('Demo model');
    await eventually(() => meta.calls.some(({ body }) => JSON.stringify(body).includes('Demo model')));
  });

  it('makes one schedule, however often it runs, and prints its report', async () => {
    const command = 'node --conditions=@concierge/source examples/nightly-report.ts';
    expect(await run(command)).toContain('Demo model');
    await run(command);
    const answer = await fetch(`${system.url}/api/cron`, { headers: { 'x-api-key': keys.admin } });
    expect(await answer.json()).toMatchObject([{ name: 'nightly report' }]);
  });

  inBrowser('that is a page', () => {
    it('never sees the key', async () => {
      const child = start('node examples/page/serve.ts');
      const browser = await startChromium(chromiumPath ?? '');
      try {
        const [line]: unknown[] = await once(createInterface({ input: child.stdout ?? process.stdin }), 'line');
        const page = await browser.newPage();
        page.setDefaultTimeout(60_000);
        const seen: string[] = [];
        page.on('request', (request) => seen.push(JSON.stringify(request.headers())));
        await page.goto(String(line).replace('Open ', ''));
        await page.getByLabel('Message').fill('Hello! Who are you?');
        await page.keyboard.press('Enter');
        await page.locator('output').getByText('Demo model').waitFor();
        expect(await page.content()).not.toContain(keys.admin);
        expect(seen.join('\n')).not.toContain(keys.admin);
      } finally {
        await browser.close();
        child.kill();
      }
    });
  });
});
