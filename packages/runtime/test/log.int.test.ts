import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';

/** A service that logs all the time and ends on SIGTERM. */
const talkative = `
  import { createLog, runService } from '@concierge/runtime';
  const log = createLog({ service: 'talkative', level: 'info' });
  setInterval(() => log.info('still here'), 10);
  await runService({ log, graceMs: 1000, wire: async () => {} });
`;

describe('the log', () => {
  it('of a service whose reader is gone does not keep the service from ending', async () => {
    const child = spawn(process.execPath, ['--conditions=@concierge/source', '--input-type=module', '--eval', talkative], {
      cwd: import.meta.dirname,
      env: {},
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await using clearing = new AsyncDisposableStack();
    clearing.defer(() => void child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    const [heard] = await once(child.stdout, 'data');
    expect(String(heard)).toContain('"service":"talkative"');
    const closed = once(child.stdout, 'close');
    child.stdout.destroy();
    await closed;
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });
});
