import { url as debuggerUrl } from 'node:inspector';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Log } from '../log.ts';
import { startThread } from '../thread.ts';

/**
 * The current work of a process, in a few ids: a turn, a request, a schedule. Never text or keys: it ends up in the
 * log.
 */
export type Activity = Readonly<Record<string, string>>;

const SLOTS = 128;
const SLOT_BYTES = 256;
/** The first two bytes of a slot hold how many bytes of text follow; 0: the slot is free. */
const LENGTH_BYTES = 2;

const current = new AsyncLocalStorage<Activity>();
/** The watchdog's thread reads it from the main thread while that thread hangs in JavaScript. */
Object.defineProperty(globalThis, Symbol.for('concierge.activity'), { value: () => current.getStore() });

const encoder = new TextEncoder();
/** Read by the watchdog's thread while the main thread hangs in native code, where no debugger can ask it anything. */
const activityBoard = new SharedArrayBuffer(SLOTS * SLOT_BYTES);
const bytes = new Uint8Array(activityBoard);
const scratch = new Uint8Array(SLOT_BYTES);
/** By slot: the number of the activity that wrote it last. */
const owners = Array.from({ length: SLOTS }, () => 0);
let begun = 0;

/**
 * Runs `work` under a name that the watchdog's log line shows if `work` stops the event loop. Costs about a
 * microsecond.
 */
export async function duringActivity<Result>(activity: Activity, work: () => Promise<Result>): Promise<Result> {
  // The newest take the place of the oldest: what stops the event loop has usually just begun.
  begun += 1;
  const number = begun;
  const start = (number % SLOTS) * SLOT_BYTES;
  write(start, activity);
  owners[number % SLOTS] = number;
  try {
    return await current.run(activity, work);
  } finally {
    if (owners[number % SLOTS] === number) bytes.fill(0, start, start + LENGTH_BYTES);
  }
}

function write(start: number, activity: Activity): void {
  const { written } = encoder.encodeInto(JSON.stringify(activity), scratch.subarray(LENGTH_BYTES));
  scratch[0] = written & 0xff;
  scratch[1] = written >> 8;
  bytes.set(scratch.subarray(0, LENGTH_BYTES + written), start);
}

/** The texts of the activities on a board, as far as they fit into their slots. */
export function readActivityBoard(board: SharedArrayBuffer): string[] {
  const decoder = new TextDecoder();
  const copy = new Uint8Array(new Uint8Array(board));
  return Array.from({ length: SLOTS }, (_none, slot) => {
    const start = slot * SLOT_BYTES;
    const length = (copy[start] ?? 0) + (copy[start + 1] ?? 0) * 256;
    return decoder.decode(copy.subarray(start + LENGTH_BYTES, start + LENGTH_BYTES + length));
  }).filter((text) => text !== '');
}

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
 * debugger are no hung event loop.
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
