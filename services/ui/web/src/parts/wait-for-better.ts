/** Resolves after the time, or as soon as the browser is online again or the tab is looked at, or when aborted. */
export async function waitForBetter(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const over = new AbortController();
  const listen = { signal: over.signal };
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    over.signal.addEventListener('abort', () => clearTimeout(timer));
    addEventListener('online', () => resolve(), listen);
    document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && resolve(), listen);
    signal.addEventListener('abort', () => resolve(), listen);
  });
  over.abort();
}
