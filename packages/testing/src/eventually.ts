import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

/** Only a condition that never comes true takes this long: a busy machine is no failure. */
const TIMEOUT_MS = 60_000;
/** A machine that stood still for longer between two looks has not given the condition that time. */
const LOOK_MAX_MS = 1000;

/**
 * Repeats `check` until it returns a truthy value; fails with its last error, or with its last value.
 */
export async function eventually<Value>(
  check: () => Value | Promise<Value>,
  { timeoutMs = TIMEOUT_MS, everyMs = 20 } = {},
): Promise<NonNullable<Value>> {
  let leftMs = timeoutMs;
  for (;;) {
    const lookedMs = Date.now();
    let failure: unknown;
    try {
      const value = await check();
      if (value) return value;
      failure = new Error(`still ${JSON.stringify(value)} after ${String(timeoutMs)} ms`);
    } catch (error) {
      failure = error;
    }
    if (leftMs <= 0) throw failure;
    await wait(everyMs);
    leftMs -= Math.min(Math.max(everyMs, Date.now() - lookedMs), Math.max(everyMs, LOOK_MAX_MS));
  }
}

/** A promise that a test opens by hand. */
export function gate<Value = void>(): { readonly opened: Promise<Value>; open(value: Value): void } {
  const { promise, resolve } = Promise.withResolvers<Value>();
  return { opened: promise, open: resolve };
}

/** Resolves when the signal is aborted, or at once when it was before: a turn may be stopped before its script runs. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
