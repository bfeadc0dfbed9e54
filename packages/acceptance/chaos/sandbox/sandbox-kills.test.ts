import { execFileSync } from 'node:child_process';
import { describe, expect, it } from '@jest/globals';
import { runSandboxKills } from './sandbox-kills.ts';

const minutes = 60_000;

function works(program: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const withImage = works('docker', 'image', 'inspect', 'concierge-sandbox') ? describe : describe.skip;
const withBubblewrap = works('bwrap', '--version') ? describe : describe.skip;
// The effect of the command is unknown: it is not run again, and the model gets an error.
const wentOn = 'bash failed, went on, stop';

withImage('a worker killed in the middle of a command in Docker, 10 times', () => {
  it(
    'leaves no container after a minute, and every turn goes on and ends',
    async () => {
      const { ends, withContainer, left } = await runSandboxKills({ sandbox: 'docker', kills: 10 });
      expect(ends).toEqual({ [wentOn]: 10 });
      expect(withContainer).toBe(10);
      expect(left).toEqual([]);
    },
    30 * minutes,
  );
});

withBubblewrap('a worker killed in the middle of a command in bubblewrap, 5 times', () => {
  it(
    'leaves no process after a minute, and every turn goes on and ends',
    async () => {
      const { ends, left } = await runSandboxKills({ sandbox: 'bubblewrap', kills: 5 });
      expect(ends).toEqual({ [wentOn]: 5 });
      expect(left).toEqual([]);
    },
    30 * minutes,
  );
});
