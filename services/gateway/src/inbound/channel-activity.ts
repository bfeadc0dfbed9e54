import { limits, type MessagingChannel } from '@concierge/contract';
import { background, Slots, type Log } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { LRUCache } from 'lru-cache';
import type { BoundChannel } from './inbound-turns.ts';
import { RELIED_ON_MS } from './sender-identity.ts';

/** Owners see whole seconds, so not every message writes a file. */
const NOTE_EVERY_MS = 1000;
const bindingsMax = 10_000;
const namesMax = 50_000;
/** Names wait behind messages: a new sender's name takes several files. */
const NAMES_AT_ONCE = 2;
const NAMES_WAITING_MAX = 5000;

type TenantChannel = Pick<BoundChannel, 'scope' | 'channel'>;

/** Stores what owners see beside conversations. No message waits for it, and none fails for it. */
export class ChannelActivity {
  readonly #log: Log;
  readonly #lately = new LRUCache<string, true>({ max: bindingsMax, ttl: NOTE_EVERY_MS });
  readonly #names = new LRUCache<string, string>({ max: namesMax, ttl: RELIED_ON_MS });
  readonly #writing = new Slots(NAMES_AT_ONCE);
  #waiting = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** A message has come in. */
  inbound({ scope, channel }: TenantChannel): void {
    if (this.#isLately(scope, channel, 'inbound')) return;
    background(scope.channels.note(channel, 'inbound'), this.#log);
  }

  /** A conversation, or the tenant, takes no more for now. */
  overflow({ scope, channel }: TenantChannel): void {
    if (this.#isLately(scope, channel, 'overflow')) return;
    const message = 'Too many messages wait to be answered, in one conversation or in all of them; what came beyond them was dropped.';
    background(scope.channels.noteError(channel, { code: 'too_many_waiting', message }), this.#log);
  }

  /** Notes a sender's display name. A name that finds no room is noted with the sender's next message. */
  displayName({ scope, channel }: TenantChannel, sender: string, given: string | null): void {
    if (given === null || this.#waiting >= NAMES_WAITING_MAX) return;
    // No file keeps more characters of a name.
    const displayName = given.slice(0, limits.contactNameMaxCharacters);
    const key = `${scope.tenantId}/${channel}/${sender}`;
    if (this.#names.get(key) === displayName) return;
    this.#names.set(key, displayName);
    this.#waiting += 1;
    background(this.#remember({ scope, key, sender, displayName }), this.#log);
  }

  async #remember(name: {
    readonly scope: TenantScope;
    readonly key: string;
    readonly sender: string;
    readonly displayName: string;
  }): Promise<void> {
    const { scope, key, sender, displayName } = name;
    try {
      await this.#writing.run(async () => scope.contacts.remember({ sender, displayName }));
    } catch (error) {
      this.#names.delete(key);
      throw error;
    } finally {
      this.#waiting -= 1;
    }
  }

  #isLately({ tenantId }: TenantScope, channel: MessagingChannel, what: string): boolean {
    const key = `${tenantId}/${channel}/${what}`;
    const isLately = this.#lately.has(key);
    if (!isLately) this.#lately.set(key, true);
    return isLately;
  }
}
