import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { eventually } from '@concierge/testing';

/** Only waits for what does not come, as a command line may: nothing wakes its event loop until a process ends. */
const waiting = `
  import { execFile } from 'node:child_process';
  import { answerDeadline } from '../src/concurrency/tasks.ts';
  let givenUpMs = Infinity;
  answerDeadline(300).onabort = () => (givenUpMs = performance.now());
  execFile('sleep', ['4'], () => console.log(performance.now() - givenUpMs > 1000 ? 'given up before' : 'woken by it'));
`;

it('a deadline passes in a process in which nothing else happens', async () => {
  const flags = ['--conditions=@concierge/source', '--input-type=module', '--eval', waiting];
  // A machine that stands still for seconds just then says nothing: once more.
  const said = await eventually(async () => {
    const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd: import.meta.dirname, env: {} });
    return stdout === 'given up before\n' ? stdout : undefined;
  });
  expect(said).toBe('given up before\n');
});
