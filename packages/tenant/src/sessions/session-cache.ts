import type { Session } from '@concierge/contract';
import { LRUCache } from 'lru-cache';

export interface CachedSession {
  readonly session: Session;
  /**
   * Birth of the folder the revision was in: a session that was removed and began anew counts its revisions from 1
   * again.
   */
  readonly birth: string;
}

const defaultMaxBytes = 64 * 1024 * 1024;

/**
 * The sessions this process last read or published, over all tenants, so that a turn need not read what the one before
 * wrote.
 */
export class SessionCache {
  readonly #entries: LRUCache<string, CachedSession>;

  constructor(maxBytes = defaultMaxBytes) {
    this.#entries = new LRUCache({ maxSize: maxBytes });
  }

  get(key: string): CachedSession | undefined {
    return this.#entries.get(key);
  }

  /** `bytes` is the length of the session's file: near enough to what it takes in memory. */
  set(key: string, entry: CachedSession, bytes: number): void {
    this.#entries.set(key, entry, { size: Math.max(1, bytes) });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}
