import { MINUTE_MS, routes, type Route } from '@concierge/contract';
import { useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { QueryRefresher, type QueryPrefix } from '../../../src/feed/query-refresher.ts';
import { askForShown } from '../parts/use-feed.ts';

const prefixes = (...listed: readonly Route[]): readonly QueryPrefix[] => listed.map(({ id }) => [id]);

const now = prefixes(routes.getOverview, routes.listWaiting, routes.listWorkers);
const turns = prefixes(routes.listOperatedTurns, routes.getOperatedTurnTrace, routes.listFailures);
const deliveries = prefixes(routes.listStuckDeliveries, routes.getOperatedTurnTrace);
/** What no change of a tenant tells. */
const figures = prefixes(
  routes.getSeries,
  routes.getHealth,
  routes.listLogLines,
  routes.listOperatorAudit,
  routes.getOperatedTenant,
  routes.listWorkers,
  routes.getOverview,
  routes.listWaiting,
);

/** Kinds of events of `GET /ops/api/feed`, and the queries of the operators' pages whose answers may then be others. */
const touchedForOperators = {
  turn: [...now, ...turns],
  session: turns,
  handoff: now,
  schedule: [],
  delivery: deliveries,
  figures,
  again: [...new Map([...now, ...turns, ...deliveries, ...figures].map((prefix) => [prefix[0], prefix])).values()],
} as const satisfies Readonly<Record<string, readonly QueryPrefix[]>>;

/** Between two requests for the same. */
const REST_MS = 1000;
/** A feed that was refused is asked for again after so long. */
const REFUSED_MS = 10_000;
/** A tab that has been hidden for so long stops reading. */
const HIDDEN_MS = MINUTE_MS;

/**
 * Keeps what the operators' pages show as it is, by the feed of all tenants. `onRead`: whether it is read; while it is
 * not, pages ask by themselves.
 */
export function useOperatorFeed(isSignedIn: boolean, onRead: (isRead: boolean) => void): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (!isSignedIn) return undefined;
    const feed = new OperatorFeed(queries, onRead);
    return () => feed.stop();
  }, [queries, isSignedIn, onRead]);
}

class OperatorFeed {
  readonly #over = new AbortController();
  readonly #refresher: QueryRefresher;
  readonly #onRead: (isRead: boolean) => void;
  #source: EventSource | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(queries: QueryClient, onRead: (isRead: boolean) => void) {
    this.#onRead = onRead;
    const { signal } = this.#over;
    this.#refresher = new QueryRefresher({
      refresh: async (queryKey) => {
        if (!signal.aborted) await askForShown(queries, queryKey);
      },
      rest: async () => new Promise((resolve) => setTimeout(resolve, REST_MS)),
    });
    document.addEventListener('visibilitychange', () => this.#look(), { signal });
    this.#look();
  }

  stop(): void {
    this.#over.abort();
    clearTimeout(this.#timer);
    this.#close();
  }

  #look(): void {
    clearTimeout(this.#timer);
    if (document.visibilityState === 'visible') this.#open();
    else this.#timer = setTimeout(() => this.#close(), HIDDEN_MS);
  }

  /** The browser opens it again by itself after its end, unless it was refused. */
  #open(): void {
    if (this.#source !== undefined) return;
    const source = new EventSource(routes.followOperatorFeed.path);
    this.#source = source;
    for (const [kind, prefixes] of Object.entries(touchedForOperators)) {
      source.addEventListener(kind, () => {
        this.#onRead(true);
        this.#refresher.refresh(prefixes);
      });
    }
    source.addEventListener('error', () => {
      this.#onRead(false);
      if (source.readyState !== EventSource.CLOSED) return;
      this.#close();
      this.#timer = setTimeout(() => this.#look(), REFUSED_MS);
    });
  }

  #close(): void {
    this.#source?.close();
    this.#source = undefined;
    this.#onRead(false);
  }
}
