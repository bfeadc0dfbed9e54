import { hash } from 'node:crypto';
import type { InboundAlias, InboundMessage } from '@concierge/channel';
import { AppError, type MessagingChannel } from '@concierge/contract';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import { LRUCache } from 'lru-cache';
import type { BoundChannel } from './bound-channel.ts';
import { isSenderId } from './turn-of-message.ts';

/** Senders whose other ids this process has settled. */
const settledMax = 50_000;

type Place = Pick<BoundChannel, 'scope' | 'channel'>;

/**
 * Finds the conversation that a message belongs to. A sender may write under one id today and under another tomorrow;
 * deliveries that contain both settle which of them the conversation is kept under, once and for good.
 */
export class SenderIdentity {
  readonly #settled = new LRUCache<string, true>({ max: settledMax });

  /** Returns when the choice is on disk, if one had to be made. */
  async senderOf(place: Place, { sender, conversation }: Pick<InboundMessage, 'sender' | 'conversation'>): Promise<string> {
    const { scope, channel } = place;
    if (conversation.isGroup) {
      // A sender's group messages are mixed neither with private ones nor with another group's.
      return `${await scope.contacts.findCanonicalSender(channel, conversation.id)}:${sender.id}`;
    }
    if (sender.aliases.length > 0) await this.#settleOnce(place, sender.id, sender.aliases);
    return scope.contacts.findCanonicalSender(channel, sender.id);
  }

  /**
   * Notes that a sender or a conversation has another id from now on. False when that id already belongs to another
   * one, or is none.
   */
  async note(place: Place, { of, from, to }: Pick<InboundAlias, 'of' | 'from' | 'to'>): Promise<boolean> {
    if (!isSenderId(from) || !isSenderId(to)) return false;
    if (of === 'sender') return this.#settle(place, to, [from]);
    return addAlias(place, { alias: to, sender: from });
  }

  async #settleOnce(place: Place, id: string, others: readonly string[]): Promise<void> {
    const key = hash('sha256', JSON.stringify([place.scope.tenantId, place.channel, id, ...others]), 'base64url');
    if (this.#settled.has(key)) return;
    await this.#settle(place, id, others);
    this.#settled.set(key, true);
  }

  /** An id that leads somewhere decides; else the one that has a conversation; else the newer one is the main one. */
  async #settle(place: Place, id: string, others: readonly string[]): Promise<boolean> {
    const { scope, channel } = place;
    if ((await scope.contacts.findCanonicalSender(channel, id)) !== id) return true;
    for (const other of others) {
      const main = await scope.contacts.findCanonicalSender(channel, other);
      if (main !== other && main !== id) return addAlias(place, { alias: id, sender: main });
    }
    for (const other of others) {
      if (await hasConversation(scope, channel, other)) return addAlias(place, { alias: id, sender: other });
    }
    for (const other of others) {
      if (!(await addAlias(place, { alias: other, sender: id }))) return false;
    }
    return true;
  }
}

async function hasConversation(scope: TenantScope, channel: MessagingChannel, sender: string): Promise<boolean> {
  return (await scope.sessions.load(deriveSessionId('cs', channel, sender))) !== undefined;
}

/** False when the contacts already link the ids differently: each id keeps its own conversation then. */
async function addAlias({ scope, channel }: Place, pair: { readonly alias: string; readonly sender: string }): Promise<boolean> {
  try {
    await scope.contacts.addAlias({ channel, ...pair });
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'conflict') return false;
    throw error;
  }
}
