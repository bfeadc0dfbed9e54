import { ConciergeError } from '@concierge/client';
import { Readiness, routes } from '@concierge/contract';
import { useQueryClient, type Query } from '@tanstack/react-query';
import { useEffect } from 'react';
import { QueryRecovery } from '../../../src/feed/query-recovery.ts';
import { waitForBetter } from './wait-for-better.ts';

const READY_TIMEOUT_MS = 10_000;
/** What the pages are read from; they are also read while no worker takes a turn. */
const neededChecks = ['redis', 'index'] as const;

const failedInPassing = {
  type: 'active',
  predicate: ({ state }: Query): boolean => isPassing(state.error),
} as const;

/** Pages whose queries have failed while the service was away ask again once it is back. */
export function useRecovery(): void {
  const queries = useQueryClient();
  useEffect(() => {
    const over = new AbortController();
    const { signal } = over;
    const recovery = new QueryRecovery({
      hasFailed: () => !signal.aborted && queries.getQueryCache().findAll(failedInPassing).length > 0,
      isReady: async () => isServiceReady(signal),
      // What is asked for at that moment, as by the user's button for another page of a list, is not cut off.
      askAgain: async () => queries.refetchQueries(failedInPassing, { cancelRefetch: false }),
      wait: async (ms) => waitForBetter(ms, signal),
    });
    const leave = queries.getQueryCache().subscribe((event) => {
      if (event.type === 'updated' && event.action.type === 'error' && isPassing(event.action.error)) void recovery.begin();
    });
    return () => {
      leave();
      over.abort();
    };
  }, [queries]);
}

function isPassing(error: unknown): boolean {
  return error instanceof ConciergeError && error.isTransient;
}

/** Asked with no key, and not while the tab is hidden. */
async function isServiceReady(signal: AbortSignal): Promise<boolean> {
  if (document.visibilityState === 'hidden') return false;
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(READY_TIMEOUT_MS)]);
    const answer = await fetch(routes.readyz.path, { cache: 'no-store', signal: limited });
    const { checks } = Readiness.parse(await answer.json());
    return neededChecks.every((name) => checks[name]?.ok === true);
  } catch {
    return false;
  }
}
