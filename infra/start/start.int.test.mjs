import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, freePort } from '@concierge/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { root } from '../bootstrap.mjs';
import { START_TIMEOUT_MS, Started } from './started.mjs';

/** How long services may take to stop is the machine's affair: in development they have three seconds otherwise. */
const SHUTDOWN_GRACE_S = '120';

/** Runs the printed line, as a user would paste it. */
async function paste(line) {
  const shell = spawn('sh', ['-c', line], { stdio: ['ignore', 'pipe', 'ignore'] });
  let heard = '';
  shell.stdout.on('data', (chunk) => (heard += chunk));
  await once(shell, 'close');
  return heard;
}

/** Ids of the processes of our services that have this folder as their data directory. */
function readServices(folder) {
  const read = (path) => readFileSync(path, 'latin1');
  return readdirSync('/proc').filter((entry) => {
    try {
      return (
        /^\d+$/u.test(entry) && read(`/proc/${entry}/cmdline`).includes('services/') && read(`/proc/${entry}/environ`).includes(folder)
      );
    } catch (error) {
      // It has ended meanwhile, or belongs to another user.
      if (['ENOENT', 'ESRCH', 'EACCES'].includes(error.code)) return false;
      throw error;
    }
  });
}

describe('npm start', () => {
  let folder;
  let env;
  let running;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'concierge-start-'));
    env = { DATA_DIR: folder, GATEWAY_PORT: String(await freePort()), UI_PORT: String(await freePort()), SHUTDOWN_GRACE_S };
    running = [];
  });
  afterEach(async () => {
    for (const started of running) {
      if (started.child.exitCode === null && started.child.signalCode === null) await started.interrupt();
    }
    rmSync(folder, { recursive: true, force: true });
  });

  const start = (...args) => {
    const started = new Started(env, args.length > 0 ? args : ['infra/start.mjs']);
    running.push(started);
    return started;
  };

  it('prints a line that streams a tool-using reply, keeps its keys over a second start, and drains on Ctrl-C', async () => {
    const first = start();
    await first.ready();
    expect(first.shown('Model')).toBe('demo');
    const streamed = await paste(/^curl -N .*$/mu.exec(first.output)[0]);
    expect(streamed).toMatch(/^event: session\n/u);
    expect(streamed).toContain('event: tool_result');
    expect(streamed.trim().split('\n\n').at(-1)).toContain('event: done');
    const page = await fetch(`http://127.0.0.1:${env.UI_PORT}/`);
    expect(page.headers.get('content-type')).toContain('text/html');
    expect(await first.interrupt()).toBe(0);
    expect(first.output).toContain('Stopped.');

    const second = start();
    await second.ready();
    expect(second.shown('admin key')).toBe(first.shown('admin key'));
    const listSessions = async () => {
      const headers = { 'x-api-key': second.shown('admin key') };
      return (await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/api/sessions`, { headers })).json();
    };
    // The end of a turn waits for the index for two seconds, and no longer.
    await eventually(async () => (await listSessions()).length > 0);
    expect(await listSessions()).toHaveLength(1);
    expect(await second.interrupt()).toBe(0);
  }, 600_000);

  it('reports in one line that a port is taken, and which variable chooses another', async () => {
    const other = createServer().listen(Number(env.GATEWAY_PORT));
    await once(other, 'listening');
    const refused = start();
    const [code] = await refused.ended;
    other.close();
    expect(code).toBe(1);
    expect(refused.output).toContain(`Port ${env.GATEWAY_PORT} is in use`);
    expect(refused.output).toContain('GATEWAY_PORT');
  });

  it('reads variables from a file; what the environment has already, wins', async () => {
    const port = env.UI_PORT;
    writeFileSync(join(folder, 'variables'), `UI_PORT=70000\nGATEWAY_PORT=abc\nLOG_LEVEL="loud"\n`);
    env = { DATA_DIR: join(folder, 'data'), UI_PORT: port, ENV_FILE: join(folder, 'variables') };
    const refused = start();
    expect((await refused.ended)[0]).toBe(1);
    expect(refused.output).toContain('Concierge cannot start: bad configuration:\n');
    expect(
      refused.output
        .match(/^ {2}- .*$/gmu)
        .map((line) => line.split(':', 1)[0].trim())
        .toSorted(),
    ).toEqual(['- GATEWAY_PORT', '- LOG_LEVEL']);
    // Nothing was started, and nothing was made.
    expect(() => readdirSync(join(folder, 'data'))).toThrow('ENOENT');
    env = { ...env, ENV_FILE: join(folder, 'none') };
    const missing = start();
    expect((await missing.ended)[0]).toBe(1);
    expect(missing.output).toMatch(/ENV_FILE names .*none, which does not exist/u);
  });

  it('refuses a second start over the same data, and leaves nothing behind when it is killed', async () => {
    const first = start();
    await first.ready();
    const gatewayPort = env.GATEWAY_PORT;
    env = { ...env, GATEWAY_PORT: String(await freePort()), UI_PORT: String(await freePort()) };
    const second = start();
    expect((await second.ended)[0]).toBe(1);
    expect(second.output).toContain('already runs');

    first.child.kill('SIGKILL');
    await eventually(async () =>
      fetch(`http://127.0.0.1:${gatewayPort}/livez`).then(
        () => false,
        () => true,
      ),
    );
    await eventually(() => readServices(folder).length === 0);
    const third = start();
    await third.ready();
    expect(await third.interrupt()).toBe(0);
    expect(readServices(folder)).toEqual([]);
    expect(() => readFileSync(join(folder, 'run.json'))).toThrow('ENOENT');
  }, 600_000);

  it('restarts in development what has changed, leaves the rest running, and lets a debugger in', async () => {
    const port = await freePort();
    const development = start('infra/dev.mjs', '--inspect', `worker:${port}`);
    await development.ready();
    await eventually(() => development.output.includes('Watching packages/'), { timeoutMs: START_TIMEOUT_MS });
    const [target] = await fetch(`http://127.0.0.1:${port}/json`).then((response) => response.json());
    expect(target.url).toContain('services/worker/src/main.ts');

    const before = readServices(folder);
    utimesSync(join(root, 'services', 'cron', 'src', 'main.ts'), new Date(), new Date());
    await eventually(() => development.output.includes('Restarting cron.'));
    await eventually(() => readServices(folder).length === before.length && readServices(folder).some((pid) => !before.includes(pid)), {
      timeoutMs: START_TIMEOUT_MS,
    });
    expect(readServices(folder).filter((pid) => before.includes(pid))).toHaveLength(before.length - 1);
    expect(await development.interrupt()).toBe(0);
    expect(readServices(folder)).toEqual([]);
  }, 600_000);

  it('lists the services when --inspect names another', async () => {
    const refused = start('infra/dev.mjs', '--inspect', 'workers');
    expect((await refused.ended)[0]).toBe(1);
    expect(refused.output).toContain('gateway, worker, cron, ui');
  });
});
