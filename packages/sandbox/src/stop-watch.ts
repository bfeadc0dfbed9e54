import { constants } from 'node:os';
import type { CommandEnd } from './sandbox.ts';

/** The offset that shells use: the program was ended by a signal. */
const signalBase = 128;

/**
 * Without HUP, INT and QUIT: no process sends them to a command in a sandbox, and some programs use 129 to 131 as exit
 * codes (git's for a wrong call is 129).
 */
const endingSignals = new Set([
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
    .filter(([name]) => endingSignals.has(name))
    .map(([name, number]) => [signalBase + number, name]),
);

/** Interprets the exit number of the sandbox. */
export function readExitCode(code: number): CommandEnd {
  const signal = signalNames.get(code);
  return signal === undefined ? { kind: 'exited', exitCode: code } : { kind: 'signalled', signal };
}

/** Why a command was ended before its own end. */
export type StopReason = 'timed_out' | 'stopped' | 'out_of_memory';

/** Reports once, with the reason, when a command's time is over or its caller cancels it. */
export class StopWatch implements Disposable {
  readonly #signal: AbortSignal;
  readonly #onStop: (reason: StopReason) => void;
  readonly #timer: NodeJS.Timeout;
  #reason: StopReason | undefined;

  constructor(timeoutMs: number, signal: AbortSignal, onStop: (reason: StopReason) => void) {
    this.#signal = signal;
    this.#onStop = onStop;
    this.#timer = setTimeout(() => {
      this.stop('timed_out');
    }, timeoutMs);
    signal.addEventListener('abort', this.#abort);
    if (signal.aborted) this.#abort();
  }

  get reason(): StopReason | undefined {
    return this.#reason;
  }

  stop(reason: StopReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#onStop(reason);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => {
    this.stop('stopped');
  };
}
