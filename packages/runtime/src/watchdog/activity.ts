import { AsyncLocalStorage } from 'node:async_hooks';

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
export const activityBoard = new SharedArrayBuffer(SLOTS * SLOT_BYTES);
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
