import { url as debuggerUrl } from 'node:inspector';
import { activityBoard } from '../concurrency/tasks.ts';
import type { Log } from '../log.ts';
import { startThread } from '../thread.ts';

/** How often the event loop ticks, and how often the thread checks. */
export const TICK_EVERY_MS = 500;
/**
 * Without a tick for this long the process is ended: a hung event loop neither serves nor renews what it has leased.
 */
export const HUNG_AFTER_MS = 10_000;

/** Ticks so far apart are no busy event loop: it hung, or the whole process stood still. */
const STOOD_STILL_MS = 2000;

/** The cells that the two threads share, as 32-bit integers. */
export const WatchdogCell = { ticks: 0, stallMs: 1, debugged: 2, count: 3 } as const;

export interface WatchdogThreadData {
  readonly service: string;
  readonly cells: SharedArrayBuffer;
  readonly board: SharedArrayBuffer;
}

const cells = new Int32Array(new SharedArrayBuffer(WatchdogCell.count * Int32Array.BYTES_PER_ELEMENT));

/** The longest stall of this process's event loop in the last ten seconds, in ms, as measured by its watchdog. */
export function eventLoopStallMs(): number {
  return Atomics.load(cells, WatchdogCell.stallMs);
}

/** Infinity where no watchdog runs. */
let tickedMs = Infinity;
let stoodStillMs = -Infinity;

/**
 * Whether this process took part in nothing for some seconds, and that within the last `ms`: it was frozen, its machine
 * slept, or its event loop hung. What did not arrive in time may have waited for this process.
 */
export function stoodStillWithin(ms: number): boolean {
  const nowMs = performance.now();
  return nowMs - stoodStillMs < ms || nowMs - tickedMs > STOOD_STILL_MS;
}

/**
 * Watches this process's event loop from a separate thread and ends the process when it hangs, with a log line that
 * names the hung work. Only time in which that thread ran counts: a machine that slept, a frozen process and a paused
 * debugger are no hung event loop. Nor is a main thread that gets next to no processor (`LoopSilence`).
 */
export function startWatchdog(service: string, log: Log): void {
  const tick = (): void => {
    const nowMs = performance.now();
    if (nowMs - tickedMs > STOOD_STILL_MS) stoodStillMs = nowMs;
    tickedMs = nowMs;
    Atomics.store(cells, WatchdogCell.debugged, debuggerUrl() === undefined ? 0 : 1);
    Atomics.add(cells, WatchdogCell.ticks, 1);
  };
  tick();
  setInterval(tick, TICK_EVERY_MS).unref();
  const workerData: WatchdogThreadData = { service, cells: cells.buffer, board: activityBoard };
  const resourceLimits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 };
  const thread = startThread(import.meta.url, 'watchdog-thread', { workerData, resourceLimits });
  thread.unref();
  thread.on('error', (error) => {
    log.error({ err: error }, 'the watchdog of the event loop ended; a hung event loop is not noticed any more');
  });
}
