import { readFileSync } from 'node:fs';
import { HUNG_AFTER_MS } from './watchdog.ts';

/**
 * Of its silence a hung thread works or is blocked at least this long. One that works less in ten seconds has no
 * processor: others have them all, and it has a low priority or a small share of them.
 */
const WORKED_LEAST_MS = HUNG_AFTER_MS / 5;
const NANOSECONDS_PER_MS = 1_000_000;

/** What the system says of a thread. */
export interface ThreadTimes {
  readonly ranMs: number;
  /** For how long it could run and had no processor. A wait is added when it ends. */
  readonly queuedMs: number;
  /** It runs or could run; otherwise it is blocked. */
  readonly isRunnable: boolean;
}

/**
 * How long the main thread's event loop has not ticked, and whether that is a hang: a thread that had no processor for
 * most of this time does not hang.
 */
export class LoopSilence {
  #silentMs = 0;
  #queuedMs = 0;
  /** A wait for a processor that goes on. */
  #waitsMs = 0;
  #seen: ThreadTimes | undefined;

  get silentMs(): number {
    return this.#silentMs;
  }

  get isHung(): boolean {
    return this.#silentMs >= HUNG_AFTER_MS && this.#silentMs - this.#queuedMs - this.#waitsMs >= WORKED_LEAST_MS;
  }

  /** The loop has ticked since the last look, or need not. `times`: undefined where the system does not say them. */
  noteTick(times: ThreadTimes | undefined): void {
    this.#silentMs = 0;
    this.#queuedMs = 0;
    this.#waitsMs = 0;
    this.#seen = times;
  }

  /** The loop has not ticked for so long again. */
  noteSilence(ms: number, times: ThreadTimes | undefined): void {
    const seen = this.#seen;
    this.#seen = times;
    this.#silentMs += ms;
    if (seen === undefined || times === undefined) return;
    this.#queuedMs += times.queuedMs - seen.queuedMs;
    const waits = times.isRunnable && times.ranMs === seen.ranMs && times.queuedMs === seen.queuedMs;
    this.#waitsMs = waits ? this.#waitsMs + ms : 0;
  }
}

/** Of Linux, where the kernel counts them; undefined elsewhere. */
export function readMainThread(): ThreadTimes | undefined {
  // The main thread has the id of the process.
  const task = `/proc/self/task/${String(process.pid)}`;
  try {
    const [ranMs = 0, queuedMs = 0] = readFileSync(`${task}/schedstat`, 'utf8')
      .split(' ')
      .map((nanoseconds) => Number(nanoseconds) / NANOSECONDS_PER_MS);
    const stat = readFileSync(`${task}/stat`, 'utf8');
    // Behind the name, which may have any characters in it.
    const isRunnable = stat.startsWith(') R', stat.lastIndexOf(')'));
    // A kernel that does not count writes zeros, and this process has run.
    return ranMs > 0 ? { ranMs, queuedMs, isRunnable } : undefined;
  } catch {
    return undefined;
  }
}
