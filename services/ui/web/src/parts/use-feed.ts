import type { FeedEvent } from '@concierge/client';
import { FeedChange } from '@concierge/contract';
import { useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { z } from 'zod';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { QueryRefresher, type QueryPrefix } from '../../../src/feed/query-refresher.ts';
import type { Owner } from '../sign-in/owner-session.ts';
import { TabMessages } from '../sign-in/tab-messages.ts';
import { wantsNotifications } from '../inbox/notifications.ts';
import { waitForBetter } from './wait-for-better.ts';

const NAME = 'concierge.feed';
/** Between two requests for the same; longer where they use up what the tenant may ask in an hour. */
const restMs = { free: 1000, counted: 120_000 } as const;
/** A hidden tab stops reading after so long, for itself or for all tabs, unless it is to tell of what waits. */
const hiddenMs = { alone: 60_000, shared: 30 * 60_000 } as const;

const Told: z.ZodType<FeedEvent> = z.union([z.object({ kind: z.literal('again') }), FeedChange]);

/** Keeps what the pages of an owner show as it is, by the feed of the tenant. */
export function useFeed(gateway: GatewayClient, owner: Owner): void {
  const queries = useQueryClient();
  useEffect(() => {
    // A key for cs alone may not read it.
    if (owner.reach === 'cs') return undefined;
    const feed = new TabFeed({ gateway, queries, isShared: owner.key === undefined && isSecureContext });
    return () => feed.stop();
  }, [gateway, owner, queries]);
}

interface TabFeedOptions {
  readonly gateway: GatewayClient;
  readonly queries: QueryClient;
  /** All tabs are signed in by the same cookie, and the browser has locks. */
  readonly isShared: boolean;
}

/**
 * The feed as one tab hears it. A browser opens six connections to a service at most: of tabs that share a sign-in the
 * one with the lock reads, and tells the others.
 *
 * reading ⇄ resting, when it was hidden for long or the feed is refused, until it is looked at again; stopped.
 */
class TabFeed {
  readonly #options: TabFeedOptions;
  readonly #over = new AbortController();
  readonly #refresher: QueryRefresher;
  readonly #tabs: TabMessages | undefined;
  #reading: AbortController | undefined;
  #hiddenTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: TabFeedOptions) {
    const { gateway, queries, isShared } = options;
    this.#options = options;
    const { signal } = this.#over;
    this.#refresher = new QueryRefresher({
      refresh: async (prefix) => {
        if (!signal.aborted) await askForShown(queries, prefix);
      },
      rest: async () => waitFor(restMs[gateway.isCounted ? 'counted' : 'free']),
    });
    if (isShared) {
      this.#tabs = new TabMessages(NAME, (message) => {
        const { data: event } = Told.safeParse(message);
        if (event !== undefined) this.#refresher.touch(event);
      });
    }
    document.addEventListener('visibilitychange', () => this.#look(), { signal });
    void this.#read();
    this.#look();
  }

  stop(): void {
    this.#over.abort();
    clearTimeout(this.#hiddenTimer);
    this.#rest();
    this.#tabs?.close();
  }

  #look(): void {
    clearTimeout(this.#hiddenTimer);
    if (document.visibilityState === 'visible') void this.#read();
    else if (!wantsNotifications())
      this.#hiddenTimer = setTimeout(() => this.#rest(), hiddenMs[this.#options.isShared ? 'shared' : 'alone']);
  }

  #rest(): void {
    this.#reading?.abort();
    this.#reading = undefined;
  }

  async #read(): Promise<void> {
    if (this.#reading !== undefined) return;
    const reading = new AbortController();
    const { signal } = reading;
    this.#reading = reading;
    try {
      if (this.#options.isShared) await navigator.locks.request(NAME, { signal }, async () => this.#follow(signal));
      else await this.#follow(signal);
    } catch {
      // Hidden, stopped or refused: what the pages show is then as old as their last request.
    }
    if (this.#reading === reading) this.#reading = undefined;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const options = { signal, wait: waitForBetter, maxRetries: Number.POSITIVE_INFINITY };
    for await (const event of this.#options.gateway.followFeed(options)) {
      this.#tabs?.send(event);
      this.#refresher.touch(event);
    }
  }
}

/**
 * Asks for the queries that are shown. What a hidden tab shows is asked for when it is looked at; what its title
 * counts, at once.
 */
export async function askForShown(queries: QueryClient, queryKey: QueryPrefix): Promise<void> {
  const isUnderWay = queries.isFetching({ queryKey }) > 0;
  const isQuiet = document.visibilityState === 'hidden' && !isUnderWay && queryKey[0] !== 'handoffs';
  const filters = { queryKey, refetchType: isQuiet ? 'none' : 'active' } as const;
  // One that is under way is not cut off, for it might never come to its end.
  await queries.invalidateQueries(filters, { cancelRefetch: false });
  // But its answer may be from before the change.
  if (isUnderWay) await queries.invalidateQueries(filters, { cancelRefetch: false });
}

async function waitFor(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
