import type { Readiness } from '@concierge/contract';

/** Named checks; each rejects when its dependency cannot be used. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<unknown>>>;

const CHECK_TIMEOUT_MS = 2000;

/** Runs every check at once, each with a deadline. What went wrong is for the log, not for the answer. */
export async function readiness(checks: ReadinessChecks): Promise<Readiness> {
  const results = await Promise.all(Object.entries(checks).map(async ([name, check]) => [name, await runCheck(check)] as const));
  const ready = results.every(([, { ok }]) => ok);
  return { status: ready ? 'ready' : 'unready', checks: Object.fromEntries(results) };
}

async function runCheck(check: () => Promise<unknown>): Promise<Readiness['checks'][string]> {
  const startedMs = performance.now();
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    deadline.reject(new Error('no answer in time'));
  }, CHECK_TIMEOUT_MS);
  const ok = await Promise.race([check(), deadline.promise]).then(
    () => true,
    () => false,
  );
  clearTimeout(timer);
  return { ok, ms: Math.round((performance.now() - startedMs) * 10) / 10 };
}
