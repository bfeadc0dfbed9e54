import { describe, expect, it } from '@jest/globals';
import { readExitCode } from './stop-watch.ts';

describe('the number a sandbox ends with', () => {
  it('is an exit code, or names the signal that ended the program', () => {
    expect(readExitCode(0)).toEqual({ kind: 'exited', exitCode: 0 });
    expect(readExitCode(1)).toEqual({ kind: 'exited', exitCode: 1 });
    expect(readExitCode(137)).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
    expect(readExitCode(153)).toEqual({ kind: 'signalled', signal: 'SIGXFSZ' });
    expect(readExitCode(255)).toEqual({ kind: 'exited', exitCode: 255 });
  });

  it('is an exit code where programs use that code themselves and no process sends the signal', () => {
    for (const code of [129, 130, 131]) expect(readExitCode(code)).toEqual({ kind: 'exited', exitCode: code });
  });
});
