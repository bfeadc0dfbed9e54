import { describe, expect, it } from '@jest/globals';
import { endOfCode } from './command-end.ts';

describe('the number a sandbox ends with', () => {
  it('is an exit code, or names the signal that ended the program', () => {
    expect(endOfCode(0)).toEqual({ kind: 'exited', exitCode: 0 });
    expect(endOfCode(1)).toEqual({ kind: 'exited', exitCode: 1 });
    expect(endOfCode(137)).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
    expect(endOfCode(153)).toEqual({ kind: 'signalled', signal: 'SIGXFSZ' });
    expect(endOfCode(255)).toEqual({ kind: 'exited', exitCode: 255 });
  });

  it('is an exit code where programs use that code themselves and no process sends the signal', () => {
    for (const code of [129, 130, 131]) expect(endOfCode(code)).toEqual({ kind: 'exited', exitCode: code });
  });
});
