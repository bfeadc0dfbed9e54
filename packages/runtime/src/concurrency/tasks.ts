import { AsyncLocalStorage } from 'node:async_hooks';
import type { Log } from '../log.ts';

const PARTS = 3;

/**
 * Calls `giveUp` when an answer has taken too long. A pause in which this process itself stood still counts as one of
 * three parts of it, and what has arrived by then is read first: a plain timer comes before what has arrived.
 * @returns ends the wait, which keeps no process alive
 */
export function giveUpAfter(ms: number, giveUp: () => void): () => void {
  let parts = 0;
  let last: NodeJS.Immediate | undefined;
  const endPart = (): void => {
    parts += 1;
    if (parts < PARTS) timer = setTimeout(endPart, ms / PARTS).unref();
    // Referenced: for one that is not, the event loop does not come round, but waits for something else to happen.
    else last = setImmediate(giveUp);
  };
  let timer = setTimeout(endPart, ms / PARTS).unref();
  return () => {
    clearTimeout(timer);
    clearImmediate(last);
  };
}

/** Waits as long as an answer may take (`giveUpAfter`). */
export async function waitForAnswer(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  giveUpAfter(ms, resolve);
  return promise;
}

/** A signal that aborts, with a TimeoutError, when an answer has taken too long (`giveUpAfter`). */
export function answerDeadline(ms: number): AbortSignal {
  const deadline = new AbortController();
  giveUpAfter(ms, () => deadline.abort(new DOMException(`No answer came in ${String(ms)} ms.`, 'TimeoutError')));
  return deadline.signal;
}

/**
 * Room for a number of tasks at once, in this process. A task without room waits, in order of arrival, or is refused:
 * the caller's choice.
 */
export class Slots {
  readonly #count: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(count: number) {
    this.#count = count;
  }

  get isIdle(): boolean {
    return this.#taken === 0;
  }

  /** A slot, free again when it is disposed; undefined when all are taken. */
  tryTake(): Disposable | undefined {
    if (this.#taken >= this.#count) return undefined;
    this.#taken += 1;
    return {
      [Symbol.dispose]: () => {
        this.#release();
      },
    };
  }

  /** Waits for a slot. */
  async run<Result>(task: () => Promise<Result>): Promise<Result> {
    if (this.#taken < this.#count) this.#taken += 1;
    else await this.#wait();
    try {
      return await task();
    } finally {
      this.#release();
    }
  }

  /** Hands the slot to the next waiting task: a new task does not overtake waiting ones. */
  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken -= 1;
    else next();
  }

  async #wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    await promise;
  }
}

/** A number of slots for each key. A key is stored only while it has tasks. */
export class KeyedSlots {
  readonly #perKey: number;
  readonly #byKey = new Map<string, Slots>();

  constructor(perKey: number) {
    this.#perKey = perKey;
  }

  async run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    const slots = this.#byKey.get(key) ?? new Slots(this.#perKey);
    this.#byKey.set(key, slots);
    try {
      return await slots.run(task);
    } finally {
      if (slots.isIdle && this.#byKey.get(key) === slots) this.#byKey.delete(key);
    }
  }
}

/** Runs tasks with the same key one after another, in order of arrival; within this process only. */
export class KeyedMutex extends KeyedSlots {
  constructor() {
    super(1);
  }
}

export interface TenantSlotsOptions {
  /** Tasks at once, over all tenants. */
  readonly count: number;
  /** Tasks of one tenant at once: fewer, so that other tenants always find a slot. */
  readonly perTenant: number;
}

/**
 * Room for a number of tasks at once, of which no tenant has all: a tenant with thousands of tasks waits for its own
 * tasks, and no other tenant waits for it.
 */
export class TenantSlots {
  readonly #all: Slots;
  readonly #shares: KeyedSlots;

  constructor({ count, perTenant }: TenantSlotsOptions) {
    this.#all = new Slots(count);
    this.#shares = new KeyedSlots(perTenant);
  }

  async run<Result>(tenantId: string, task: () => Promise<Result>): Promise<Result> {
    return this.#shares.run(tenantId, async () => this.#all.run(task));
  }
}

/** For a promise that no caller awaits: its failure is logged, never unhandled. */
export function background(task: Promise<unknown>, log: Pick<Log, 'error'>): void {
  task.catch((error: unknown) => {
    log.error({ err: error }, 'background task failed');
  });
}

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
  writeActivity(start, activity);
  owners[number % SLOTS] = number;
  try {
    return await current.run(activity, work);
  } finally {
    if (owners[number % SLOTS] === number) bytes.fill(0, start, start + LENGTH_BYTES);
  }
}

function writeActivity(start: number, activity: Activity): void {
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
