import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import { eventually, TestRedis } from '@concierge/testing';

/** A service that logs all the time and ends on SIGTERM. */
const talkative = `
  import { createLog, runService } from '@concierge/runtime';
  const log = createLog({ service: 'talkative', level: 'info' });
  setInterval(() => log.info('still here'), 10);
  await runService({ log, graceMs: 1000, wire: async () => {} });
`;

/** Logs how Redis refuses a command, alone and within a transaction. */
const refused = `
  import { connectRedis, createLog } from '@concierge/runtime';
  const log = createLog({ service: 'refused', level: 'info' });
  const redis = connectRedis({ url: process.argv[1], role: 'worker', log });
  await redis.call('SET', 'held by a text', 'x');
  await redis.call('LPUSH', 'held by a text', 'what was said').catch((err) => log.warn({ err }, 'alone'));
  await redis.multi().call('NO-COMMAND', 'what was said').exec().catch((err) => log.warn({ err }, 'together'));
  redis.disconnect();
`;

const runCode = (code: string): string[] => ['--conditions=@concierge/source', '--input-type=module', '--eval', code];

describe('the log', () => {
  it('has no argument of a command that Redis refused: messages are among them', async () => {
    await using server = await TestRedis.start();
    const child = spawn(process.execPath, [...runCode(refused), server.url], {
      cwd: import.meta.dirname,
      env: {},
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const printed = await text(child.stdout);
    expect(printed).toMatch(/"name":"LPUSH"[\s\S]*"msg":"alone"[\s\S]*"name":"NO-COMMAND"[\s\S]*"msg":"together"/iu);
    expect(printed).not.toContain('what was said');
  });

  it('of a service whose reader is gone does not keep the service from ending', async () => {
    const child = spawn(process.execPath, runCode(talkative), {
      cwd: import.meta.dirname,
      env: {},
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await using clearing = new AsyncDisposableStack();
    clearing.defer(() => void child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    let heard = '';
    child.stdout.on('data', (chunk) => (heard += String(chunk)));
    // Not its first line, which says that it is ready: a signal right behind that may come before the one who takes it.
    await eventually(() => heard.includes('still here'), { timeoutMs: 100_000 });
    expect(heard).toContain('"service":"talkative"');
    const closed = once(child.stdout, 'close');
    child.stdout.destroy();
    await closed;
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });
});
