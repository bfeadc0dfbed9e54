import { constants } from 'node:os';
import type { CommandEnd } from './sandbox.ts';

/** The offset that shells use: the program was ended by a signal. */
const signalBase = 128;

/**
 * Without HUP, INT and QUIT: no process sends them to a command in a sandbox, and some programs use 129 to 131 as exit
 * codes (git's for a wrong call is 129).
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

/** Interprets the exit number of the sandbox. */
export function endOfCode(code: number): CommandEnd {
  const signal = signalNames.get(code);
  return signal === undefined ? { kind: 'exited', exitCode: code } : { kind: 'signalled', signal };
}
