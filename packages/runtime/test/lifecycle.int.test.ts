import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { eventually } from '@concierge/testing';

/** Longer than a service may take to close. */
const FROZEN_S = 17;

/** What it closes needs another process, which ends while this one stands still. */
const service = `
  import { execFile } from 'node:child_process';
  import { promisify } from 'node:util';
  import { startService } from '@concierge/runtime';
  const readConfig = () => ({ logLevel: 'info', prettyLog: false, graceMs: 0 });
  const wire = async (_config, { stack }) => {
    // A service has something open.
    const open = setInterval(() => undefined, 1000);
    stack.defer(async () => {
      await promisify(execFile)('sleep', ['1']);
      clearInterval(open);
    });
  };
  await startService({ name: 'tested', readConfig, load: () => wire });
`;

describe('a service that is told to stop', () => {
  it('stops cleanly when it stood still meanwhile for longer than it may take', async () => {
    const child = spawn(process.execPath, ['--conditions=@concierge/source', '--input-type=module', '--eval', service], {
      cwd: import.meta.dirname,
      env: {},
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await using clearing = new AsyncDisposableStack();
    clearing.defer(() => void child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    let printed = '';
    child.stdout.on('data', (chunk) => (printed += String(chunk)));
    await eventually(() => printed.includes('"msg":"ready"'), { timeoutMs: 100_000 });
    child.kill('SIGTERM');
    await eventually(() => printed.includes('"msg":"stopping"'));
    child.kill('SIGSTOP');
    await promisify(execFile)('sleep', [String(FROZEN_S)]);
    child.kill('SIGCONT');
    expect([await ended, printed]).toEqual([[0, null], expect.stringContaining('"msg":"stopped"')]);
  });
});
