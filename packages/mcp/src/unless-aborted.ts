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
