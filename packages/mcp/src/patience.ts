import { setImmediate as nextRound, setTimeout as wait } from 'node:timers/promises';

/** The task's outcome, or the signal's reason as soon as that aborts; the task itself goes on. */
export async function unlessAborted<Result>(task: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  task.catch(() => undefined);
  try {
    return await Promise.race([task, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

const PARTS = 3;

/**
 * Waits as long as an answer may take. A pause in which this process itself stood still counts as one of three parts of
 * it, and what has arrived by then is read before this resolves.
 */
export async function patience(ms: number): Promise<void> {
  for (let part = 0; part < PARTS; part += 1) await wait(ms / PARTS, undefined, { ref: false });
  await nextRound(undefined, { ref: false });
}
