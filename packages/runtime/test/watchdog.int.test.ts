import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { eventually } from '@concierge/testing';

const HUNG_AFTER_S = 10;

/** A service that does `work` for one of two turns, as soon as it is ready. */
const serviceThat = (work: string): string => `
  import { duringActivity, startService } from '@concierge/runtime';
  const never = Promise.withResolvers();
  const readConfig = () => ({ logLevel: 'info', prettyLog: false, graceMs: 1000 });
  const wire = async () => {
    setImmediate(async () => {
      void duringActivity({ turnId: 't_waits' }, async () => never.promise);
      void duringActivity({ turnId: 't_works' }, async () => {
        await null;
        ${work}
      });
    });
  };
  await startService({ name: 'tested', readConfig, load: () => wire });
`;

function start(work: string): ChildProcess {
  return spawn(process.execPath, ['--conditions=@concierge/source', '--input-type=module', '--eval', serviceThat(work)], {
    cwd: import.meta.dirname,
    env: {},
    stdio: ['ignore', 'pipe', 'inherit'],
    // What no watchdog ends is ended here, by a signal of another name.
    timeout: 150_000,
    killSignal: 'SIGABRT',
  });
}

async function runUntilItEnds(work: string): Promise<{ signal: unknown; output: string }> {
  const child = start(work);
  const lines: string[] = [];
  child.stdout?.on('data', (chunk) => lines.push(String(chunk)));
  const [, signal] = await once(child, 'close');
  return { signal, output: lines.join('') };
}

const fatalLine = (output: string): unknown =>
  output
    .split('\n')
    .filter((line) => line !== '')
    .map((line): unknown => JSON.parse(line))
    .find((line) => typeof line === 'object' && line !== null && 'level' in line && line.level === 60);

describe('the watchdog', () => {
  it('ends a process whose event loop hangs in JavaScript, and names the turn and the place', async () => {
    const { signal, output } = await runUntilItEnds(`(function spin() { for (;;) Math.random(); })();`);
    expect(signal).toBe('SIGKILL');
    expect(fatalLine(output)).toMatchObject({
      service: 'tested',
      activity: { turnId: 't_works' },
      stack: expect.arrayContaining([expect.stringContaining('spin')]),
    });
  });

  it('ends a process that hangs in native code, and names what was running', async () => {
    const { signal, output } = await runUntilItEnds(`('a' + '\\u0316\\u0301'.repeat(2_000_000)).normalize('NFC');`);
    expect(signal).toBe('SIGKILL');
    expect(fatalLine(output)).toMatchObject({
      service: 'tested',
      running: expect.arrayContaining([{ turnId: 't_waits' }, { turnId: 't_works' }]),
    });
  });

  it('does not take a process that was frozen for one that hangs', async () => {
    // It ends by itself where nothing is open.
    const child = start('setInterval(() => undefined, 1000);');
    await using clearing = new AsyncDisposableStack();
    clearing.defer(() => void child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    // Its first line comes before the watchdog runs, and before it would end cleanly.
    let printed = '';
    child.stdout?.on('data', (chunk) => (printed += String(chunk)));
    await eventually(() => printed.includes('"msg":"ready"'), { timeoutMs: 100_000 });
    child.kill('SIGSTOP');
    await promisify(execFile)('sleep', [String(HUNG_AFTER_S + 2)]);
    child.kill('SIGCONT');
    // Longer than the watchdog needs to look twice at a loop that it took for hung.
    await promisify(execFile)('sleep', ['3']);
    child.kill('SIGTERM');
    expect([await ended, printed]).toEqual([[0, null], expect.stringContaining('"msg":"stopped"')]);
  });

  it('lets a process work that is busy with interruptions', async () => {
    const { signal } = await runUntilItEnds(`
      const until = Date.now() + ${String(HUNG_AFTER_S + 2)}_000;
      while (Date.now() < until) {
        const pause = Date.now() + 3000;
        while (Date.now() < pause) Math.random();
        await new Promise((resolve) => setTimeout(resolve, 600));
      }
      process.kill(process.pid, 'SIGTERM');
    `);
    expect(signal).toBeNull();
  });
});
