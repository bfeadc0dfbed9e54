import { hash } from 'node:crypto';
import type { InboundAlias, InboundMessage } from '@concierge/channel';
import { AppError, MINUTE_MS, type MessagingChannel } from '@concierge/contract';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import { LRUCache } from 'lru-cache';
import { isSenderId, type BoundChannel } from './inbound-turns.ts';

/** Senders whose other ids this process has settled. */
const settledMax = 50_000;
/** How long a process relies on what it has stored of a sender: another one may erase the contact, who writes again. */
export const RELIED_ON_MS = 10 * MINUTE_MS;

type TenantChannel = Pick<BoundChannel, 'scope' | 'channel'>;

/**
 * Finds the conversation that a message belongs to. A sender may write under one id today and under another tomorrow;
 * deliveries that contain both settle which of them the conversation is kept under, once and for good.
 */
export class SenderIdentity {
  readonly #settled = new LRUCache<string, true>({ max: settledMax, ttl: RELIED_ON_MS });

  /** Returns when the choice is on disk, if one had to be made. */
  async findSender(
    tenantChannel: TenantChannel,
    { sender, conversation }: Pick<InboundMessage, 'sender' | 'conversation'>,
  ): Promise<string> {
    const { scope, channel } = tenantChannel;
    if (conversation.isGroup) {
      // A sender's group messages are mixed neither with private ones nor with another group's.
      return `${await scope.contacts.findCanonicalSender(channel, conversation.id)}:${sender.id}`;
    }
    if (sender.aliases.length > 0) await this.#settleOnce(tenantChannel, sender.id, sender.aliases);
    return scope.contacts.findCanonicalSender(channel, sender.id);
  }

  /**
   * Notes that a sender or a conversation has another id from now on. False when that id already belongs to another
   * one, or is none.
   */
  async note(tenantChannel: TenantChannel, { of, from, to }: Pick<InboundAlias, 'of' | 'from' | 'to'>): Promise<boolean> {
    if (!isSenderId(from) || !isSenderId(to)) return false;
    if (of === 'sender') return this.#settle(tenantChannel, to, [from]);
    return addAlias(tenantChannel, { alias: to, sender: from });
  }

  async #settleOnce(tenantChannel: TenantChannel, id: string, others: readonly string[]): Promise<void> {
    const key = hash('sha256', JSON.stringify([tenantChannel.scope.tenantId, tenantChannel.channel, id, ...others]), 'base64url');
    if (this.#settled.has(key)) return;
    await this.#settle(tenantChannel, id, others);
    this.#settled.set(key, true);
  }

  /** An id that leads somewhere decides; else the one that has a conversation; else the newer one is the main one. */
  async #settle(tenantChannel: TenantChannel, id: string, others: readonly string[]): Promise<boolean> {
    const { scope, channel } = tenantChannel;
    if ((await scope.contacts.findCanonicalSender(channel, id)) !== id) return true;
    for (const other of others) {
      const main = await scope.contacts.findCanonicalSender(channel, other);
      if (main !== other && main !== id) return addAlias(tenantChannel, { alias: id, sender: main });
    }
    for (const other of others) {
      if (await hasConversation(scope, channel, other)) return addAlias(tenantChannel, { alias: id, sender: other });
    }
    for (const other of others) {
      if (!(await addAlias(tenantChannel, { alias: other, sender: id }))) return false;
    }
    return true;
  }
}

async function hasConversation(scope: TenantScope, channel: MessagingChannel, sender: string): Promise<boolean> {
  return (await scope.sessions.load(deriveSessionId('cs', channel, sender))) !== undefined;
}

/** False when the contacts already link the ids differently: each id keeps its own conversation then. */
async function addAlias({ scope, channel }: TenantChannel, pair: { readonly alias: string; readonly sender: string }): Promise<boolean> {
  try {
    await scope.contacts.addAlias({ channel, ...pair });
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'conflict') return false;
    throw error;
  }
}
