// Types the blocks of shell of every page into one running system, page by page.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { TestRedis, freePort } from '@concierge/testing';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pathWithTools } from '../bootstrap.mjs';
import { sourceFlag } from '../run-typescript.mjs';
import { Started } from '../start/started.mjs';
import { readBlocks, readPage, userPages } from './shell-blocks.mjs';

const OPS_TOKEN = 'the-token-of-operators';
/** Nothing listens there: what would ask a channel's provider learns that it cannot be reached. */
const nowhere = 'http://127.0.0.1:1';
const providers = { META_GRAPH_URL: `${nowhere}/v23.0`, TELEGRAM_API_URL: nowhere, SLACK_API_URL: nowhere, TWILIO_API_URL: nowhere };

const typed = userPages
  .map((page) => ({ page, blocks: readBlocks(readPage(page)).filter(({ language, reason }) => language === 'sh' && reason === undefined) }))
  .filter(({ blocks }) => blocks.length > 0);

/**
 * `concierge` without a Node for each command, in the server's folder; `npx concierge`; `curl` that fails where it was
 * refused.
 */
function writePrograms(folder, socket) {
  const ask = `curl --silent --show-error --unix-socket ${socket} --data-binary @- http://concierge/`;
  const programs = {
    concierge: `PATH=\${PATH#*:}\nanswer=$( { env -0; printf '\\0'; printf '%s\\0' "$@"; } | ${ask}) || exit 1
printf '%s\\n' "$answer" | sed '$d'\nexit "\${answer##*[!0-9]}"`,
    npx: `[ "$1" = concierge ] || exit 1\nexec "$@"`,
    curl: `PATH=\${PATH#*:}\nexec curl --silent --show-error --fail-with-body "$@"`,
  };
  mkdirSync(folder);
  for (const [name, lines] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${lines}\n`);
    chmodSync(join(folder, name), 0o755);
  }
}

describe('the commands of', () => {
  let folder;
  let env;
  let started;
  let otherRedis;
  let commandLine;

  /** What a page prints, from its first command to its last; each runs where the ones before have left it. */
  async function type(script) {
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '';
    for (const stream of [shell.stdout, shell.stderr]) stream.setEncoding('utf8').on('data', (text) => (printed += text));
    const [code] = await once(shell, 'close');
    return { code, printed };
  }

  /** As it stands in the page but for what differs from installation to installation. */
  const adapt = (text) =>
    text
      .replaceAll('ck_live_…', started.shown('admin key'))
      .replaceAll('localhost:8000', `localhost:${env.GATEWAY_PORT}`)
      .replaceAll('redis://localhost:6380', otherRedis.url);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'concierge-typed-'));
    const programs = join(folder, 'bin');
    const socket = join(folder, 'concierge.sock');
    writePrograms(programs, socket);
    commandLine = fork(join(import.meta.dirname, 'concierge-server.mjs'), [socket], { cwd: folder, execArgv: [sourceFlag] });
    const settings = {
      DATA_DIR: join(folder, 'data'),
      GATEWAY_PORT: String(await freePort()),
      UI_PORT: String(await freePort()),
      OPS_TOKEN,
    };
    started = new Started({ ...settings, ...providers }, ['infra/start.mjs']);
    env = { ...settings, ...providers, HOME: folder, PATH: [programs, pathWithTools()].join(delimiter), ENV_FILE: '/dev/null' };
    [otherRedis] = await Promise.all([TestRedis.start(), started.ready(), once(commandLine, 'message')]);
    env.KEY = started.shown('admin key');
    // The tenant of the operators' pages.
    const { code, printed } = await type('concierge tenant create acme');
    if (code !== 0) throw new Error(printed);
  });
  afterAll(async () => {
    commandLine?.kill();
    await started?.interrupt();
    await otherRedis?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  it('pages are found out when they fail', async () => {
    expect(await type('concierge tenant show nobody; true')).toMatchObject({ code: 1, printed: expect.stringContaining('nobody') });
    expect(await type(adapt('curl http://localhost:8000/api/tenant -H "X-API-Key: wrong"; true'))).toMatchObject({ code: 22 });
  });

  it.each(typed)('$page do what they say', async ({ page, blocks }) => {
    const { code, printed } = await type(blocks.map(({ body }) => adapt(body)).join('\n'));
    expect({ page, code, printed }).toEqual({ page, code: 0, printed });
    expect(printed).not.toContain('event: error');
    if (page !== 'README.md') return;
    expect(printed.match(/^event: done$/gmu)).toHaveLength(2);
    expect(printed).toContain('"output":"We are open from 9 to 18, Monday to Saturday.');
    expect(printed).toContain('"object":"chat.completion"');
    expect(printed).toMatch(/^workers +ok +1 alive$/mu);
  });
});
