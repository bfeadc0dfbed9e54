import { constants } from 'node:os';
import type { CommandEnd } from './sandbox.ts';

/** As shells say it: the program was ended by a signal. */
const signalBase = 128;

/**
 * Not HUP, INT and QUIT: nobody sends them to a command in a sandbox, and 129 to 131 are exit codes of their own for some programs
 * (git's for a wrong call is 129).
 */
const telling = new Set([
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGKILL',
  'SIGSEGV',
  'SIGPIPE',
  'SIGTERM',
  'SIGXCPU',
  'SIGXFSZ',
  'SIGSYS',
]);

const signalNames = new Map(
  Object.entries(constants.signals)
    .filter(([name]) => telling.has(name))
    .map(([name, number]) => [signalBase + number, name]),
);

/** What the number means that came out of the sandbox. */
export function endOfCode(code: number): CommandEnd {
  const signal = signalNames.get(code);
  return signal === undefined ? { kind: 'exited', exitCode: code } : { kind: 'signalled', signal };
}
