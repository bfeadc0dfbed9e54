import type { Redis } from 'ioredis';
import { FeedChange, limits } from '@concierge/contract';
import { findSlot, handleMessages, listSlots, type Log } from '@concierge/runtime';
import type { TellChange } from '@concierge/tenant';
import { keyOf, queuePrefix } from '../keys.ts';

const FEED_PREFIX = `${queuePrefix}:feed:`;
/** Of all tenants. */
const ALL_FEEDS = `${FEED_PREFIX}*`;
/** Changes may have been missed, or were too many to name. */
const AGAIN = 'event: again\ndata: {}\n\n';

/** One that reads the feed of a tenant: it gets rendered events, and is asked for nothing. */
export interface FeedReader {
  write(sse: string): void;
}

/** The readers of a feed, and what they are to be told next. */
interface Feed {
  readonly readers: Set<FeedReader>;
  /** Rendered, by what has changed: of one thing the last change counts. */
  readonly changes: Map<string, string>;
  readonly everyMs: number;
  timer: NodeJS.Timeout | undefined;
}

export interface TenantFeedsOptions {
  /** A connection that only subscribes. */
  readonly subscriber: Redis;
  readonly log: Log;
}

/** Tells the readers of a tenant's feed, in any process; a Redis that is away has no readers. */
export function tellFeeds(redis: Redis): TellChange {
  return (tenantId, change) => {
    const slot = findSlot(redis, tenantId);
    if (slot.status === 'ready') slot.publish(keyOf.feed(tenantId), JSON.stringify(change)).catch(() => undefined);
  };
}

/**
 * What changes of tenants, for pages that show it: hints, which may be lost with Redis or be too many. Then, and at its
 * start, a reader is told to read everything again, so that what it shows is right a moment later in any case.
 */
export class TenantFeeds {
  readonly #subscriber: Redis;
  readonly #log: Log;
  readonly #feeds = new Map<string, Feed>();
  /** Of operators: all tenants. */
  #all: Feed | undefined;

  constructor({ subscriber, log }: TenantFeedsOptions) {
    this.#subscriber = subscriber;
    this.#log = log;
    for (const slot of listSlots(subscriber)) this.#hear(slot);
  }

  #hear(slot: Redis): void {
    handleMessages(slot, FEED_PREFIX, (tenantId, payload) => {
      this.#receive(tenantId, payload);
    });
    slot.on('pmessage', (pattern: string, channel: string, payload: string) => {
      if (pattern === ALL_FEEDS) this.#receiveOfAll(channel.slice(FEED_PREFIX.length), payload);
    });
    slot.on('ready', () => {
      for (const [tenantId, { readers }] of this.#feeds)
        if (findSlot(slot, tenantId) === slot) void this.#subscribe(tenantId, [...readers]);
      if (this.#all !== undefined) void this.#subscribeToAll(slot, [...this.#all.readers]);
    });
  }

  /** Begins with `again`, once nothing is missed any more. @returns a function that stops it */
  follow(tenantId: string, reader: FeedReader): () => void {
    const known = this.#feeds.get(tenantId);
    const feed = known ?? newFeed(limits.feedEveryMs);
    this.#feeds.set(tenantId, feed);
    feed.readers.add(reader);
    void this.#subscribe(tenantId, [reader]);
    return () => {
      feed.readers.delete(reader);
      if (feed.readers.size > 0 || this.#feeds.get(tenantId) !== feed) return;
      clearTimeout(feed.timer);
      this.#feeds.delete(tenantId);
      findSlot(this.#subscriber, tenantId)
        .unsubscribe(keyOf.feed(tenantId))
        .catch(() => undefined);
    };
  }

  /** As `follow`, of all tenants: whose changes are of which kind. @returns a function that stops it */
  followAll(reader: FeedReader): () => void {
    const feed = this.#all ?? newFeed(limits.operatorFeedEveryMs);
    this.#all = feed;
    feed.readers.add(reader);
    for (const slot of listSlots(this.#subscriber)) void this.#subscribeToAll(slot, [reader]);
    return () => {
      feed.readers.delete(reader);
      if (feed.readers.size > 0 || this.#all !== feed) return;
      clearTimeout(feed.timer);
      this.#all = undefined;
      for (const slot of listSlots(this.#subscriber)) slot.punsubscribe(ALL_FEEDS).catch(() => undefined);
    };
  }

  async #subscribeToAll(slot: Redis, readers: readonly FeedReader[]): Promise<void> {
    try {
      await slot.psubscribe(ALL_FEEDS);
    } catch (error) {
      this.#log.debug({ err: error }, 'cannot subscribe to the feeds of all tenants yet');
      return;
    }
    for (const reader of readers) reader.write(AGAIN);
  }

  #receiveOfAll(tenantId: string, payload: string): void {
    if (this.#all === undefined) return;
    const change = parseChange(payload);
    if (change === undefined) addChange(this.#all, { name: 'again', sse: AGAIN });
    else
      addChange(this.#all, { name: `${change.kind} ${tenantId}`, sse: `event: ${change.kind}\ndata: ${JSON.stringify({ tenantId })}\n\n` });
  }

  /** Where Redis is away, its return does this again. */
  async #subscribe(tenantId: string, readers: readonly FeedReader[]): Promise<void> {
    try {
      await findSlot(this.#subscriber, tenantId).subscribe(keyOf.feed(tenantId));
    } catch (error) {
      this.#log.debug({ err: error, tenantId }, 'cannot subscribe to the feed of a tenant yet');
      return;
    }
    for (const reader of readers) reader.write(AGAIN);
  }

  #receive(tenantId: string, payload: string): void {
    const feed = this.#feeds.get(tenantId);
    if (feed === undefined) return;
    // What another version tells in another way is something that has changed.
    const change = parseChange(payload);
    if (change === undefined) addChange(feed, { name: 'again', sse: AGAIN });
    else addChange(feed, { name: `${change.kind} ${change.id}`, sse: renderChange(change) });
  }
}

function newFeed(everyMs: number): Feed {
  return { readers: new Set(), changes: new Map(), everyMs, timer: undefined };
}

/** Undefined for what is no change that this version knows. */
function parseChange(payload: string): FeedChange | undefined {
  try {
    return FeedChange.safeParse(JSON.parse(payload)).data;
  } catch {
    return undefined;
  }
}

/** Sent a moment later, with what comes until then. */
function addChange(feed: Feed, { name, sse }: { readonly name: string; readonly sse: string }): void {
  const { changes, readers } = feed;
  changes.delete(name);
  changes.set(name, sse);
  if (changes.size > limits.feedChangesAtOnce) {
    changes.clear();
    changes.set('again', AGAIN);
  }
  feed.timer ??= setTimeout(() => {
    feed.timer = undefined;
    const text = [...changes.values()].join('');
    changes.clear();
    for (const reader of readers) reader.write(text);
  }, feed.everyMs);
}

function renderChange({ kind, ...change }: FeedChange): string {
  return `event: ${kind}\ndata: ${JSON.stringify(change)}\n\n`;
}
