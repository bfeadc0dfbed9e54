/** Resolves after the time, or as soon as the browser is online again or the tab is looked at; rejects when aborted. */
export async function waitForBetter(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const over = new AbortController();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    const listen = { signal: over.signal };
    addEventListener('online', () => resolve(), listen);
    document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && resolve(), listen);
    signal.addEventListener('abort', () => reject(new Error('left')), listen);
    over.signal.addEventListener('abort', () => {
      clearTimeout(timer);
    });
  }).finally(() => {
    over.abort();
  });
}

/** A random name of 32 hex digits; also where the page is not served securely and `crypto.randomUUID` is missing. */
export function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
