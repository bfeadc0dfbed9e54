import {
  readBinding,
  openSender,
  type InboundItem,
  type InboundMessage,
  type InboundRevocation,
  type ProviderUrls,
} from '@concierge/channel';
import { AppError, isSimulated, toAppName, type TenantSettings } from '@concierge/contract';
import { answerDeadline, background, TenantSlots, type Log } from '@concierge/runtime';
import type { DeliveryReceipts, StreamBytes, TurnReceipt, Turns } from '@concierge/turn';
import type { GatewayMetrics } from '../metrics.ts';
import type { Siblings } from '../processes/siblings.ts';
import { chooseBusyRule, toChannelMessage, toTurnInput, type KnownMessage, takeBack, type BoundChannel } from './inbound-turns.ts';
import { ChannelActivity } from './channel-activity.ts';
import { SenderIdentity } from './sender-identity.ts';

/** Messages of one sender that are stored together. */
const TOGETHER_MAX = 256;
/** Groups of messages on their way to the disk, over all deliveries: enough to share its syncs, and the others wait. */
const GROUPS_AT_ONCE = 256;
/** The same for one tenant: one delivery alone may hold messages of a thousand people. */
const TENANT_GROUPS_AT_ONCE = 192;
const CALLBACK_TIMEOUT_MS = 10_000;

export interface InboundOptions {
  readonly streamQuota: Pick<StreamBytes, 'refuseWhenFull'>;
  readonly turns: Pick<Turns, 'accept' | 'acceptInOrder' | 'cancel' | 'findAccepted'>;
  readonly receipts: Pick<DeliveryReceipts, 'note'>;
  readonly metrics: Pick<GatewayMetrics, 'itemEnded'>;
  readonly siblings: Pick<Siblings, 'share'>;
  readonly providerUrls: ProviderUrls;
  readonly log: Log;
}

/** What holds for all messages of one sender in a delivery. */
interface Given {
  readonly settings: TenantSettings;
  readonly receivedAtMs: number;
  /** Gets the refusals of messages that are not wanted now. */
  readonly refusals: AppError[];
}

/** The outcome of a message that need not be delivered again. */
type Outcome = 'accepted' | 'duplicate' | 'overflow' | 'busy' | 'unreadable';

/** Handles the items of channel deliveries, each by itself. */
export class Inbound {
  readonly #options: InboundOptions;
  readonly #senders = new SenderIdentity();
  readonly #notes: ChannelActivity;
  readonly #writing: TenantSlots;

  constructor(options: InboundOptions) {
    this.#options = options;
    this.#notes = new ChannelActivity(options.log);
    const { share } = options.siblings;
    this.#writing = new TenantSlots({ count: share(GROUPS_AT_ONCE), perTenant: share(TENANT_GROUPS_AT_ONCE) });
  }

  /**
   * When it returns, every message is accepted on disk, or is known not to be wanted. A sender's other ids go first:
   * messages beside them may come under those. Every item is attempted, also when one fails.
   * @returns why messages are not wanted now: `session_busy`, `too_many_waiting`
   * @throws AppError `overloaded`, when the delivery must be repeated; what was accepted of it is known then
   */
  async take(from: BoundChannel, items: readonly InboundItem[]): Promise<readonly AppError[]> {
    const failures: unknown[] = [];
    const refusals: AppError[] = [];
    const attempt = async (work: Promise<void>): Promise<void> => {
      await work.catch((error: unknown) => failures.push(error));
    };
    for (const item of items) if (item.kind === 'alias') await attempt(this.#deal(from, item));
    const bySender = Map.groupBy(
      items.filter((item) => item.kind === 'message'),
      ({ sender, conversation }) => (conversation.isGroup ? `${conversation.id} ${sender.id}` : sender.id),
    );
    await Promise.all([...bySender.values()].map(async (messages) => attempt(this.#acceptInOrder(from, messages, refusals))));
    for (const item of items) if (item.kind !== 'alias' && item.kind !== 'message') await attempt(this.#deal(from, item));
    const [failure] = failures;
    if (failure === undefined) return refusals;
    throw new AppError('overloaded', 'Not everything could be accepted; deliver it again.', { cause: failure, retryAfterSeconds: 2 });
  }

  /**
   * A message that could not be accepted is not overtaken by the sender's next one. Sender and channel settings are
   * read once for all of them.
   */
  async #acceptInOrder(from: BoundChannel, messages: readonly InboundMessage[], refusals: AppError[]): Promise<void> {
    const receivedAtMs = Date.now();
    const settings = await from.scope.settings();
    const given: Given = { settings, receivedAtMs, refusals };
    const senders = new Map<string, string>();
    for (let start = 0; start < messages.length; start += TOGETHER_MAX) {
      await this.#writing.run(from.scope.tenantId, async () => {
        const known: KnownMessage[] = [];
        for (const message of messages.slice(start, start + TOGETHER_MAX)) {
          const channelMessage = toChannelMessage(message);
          if (channelMessage === undefined) {
            this.#count(from, 'message', 'unreadable');
            continue;
          }
          const ids = JSON.stringify([message.sender.id, ...message.sender.aliases]);
          const sender = senders.get(ids) ?? (await this.#senders.findSender(from, message));
          senders.set(ids, sender);
          known.push({ message, channelMessage, sender, rule: chooseBusyRule(settings, from.channel, message) });
        }
        // Several ids of one sender are one conversation unless they conflict.
        for (const [, one] of Map.groupBy(known, ({ sender }) => sender)) await this.#accept(from, one, given);
      });
    }
  }

  /** Messages of one conversation. */
  async #accept(from: BoundChannel, known: readonly KnownMessage[], { settings, receivedAtMs, refusals }: Given): Promise<void> {
    const { scope } = from;
    this.#options.streamQuota.refuseWhenFull(scope, settings);
    const inputs = known.map((one) => ({ ...toTurnInput(from, one), receivedAtMs }));
    const { outcomes, failure } = await this.#options.turns.acceptInOrder(scope, inputs);
    for (const [index, { message, sender }] of known.slice(0, outcomes.length).entries()) {
      const outcome = outcomes[index];
      if (outcome instanceof AppError) {
        refusals.push(outcome);
        if (outcome.code === 'too_many_waiting') this.#notes.overflow(from);
      } else {
        // A simulated one is not the first message that an owner waits for.
        if (!isSimulated(sender)) this.#notes.inbound(from);
        this.#notes.displayName(from, sender, message.sender.displayName);
      }
      this.#count(from, 'message', toOutcome(outcome));
    }
    if (failure !== undefined) throw failure;
  }

  async #deal(from: BoundChannel, item: Exclude<InboundItem, InboundMessage>): Promise<void> {
    switch (item.kind) {
      case 'alias': {
        const isSettled = await this.#senders.note(from, item);
        return this.#count(from, item.kind, isSettled ? item.of : 'conflict');
      }
      case 'revocation': {
        await this.#revoke(from, item);
        return this.#count(from, item.kind, item.reason);
      }
      case 'receipt': {
        // This is no reason to have the whole delivery repeated.
        await this.#options.receipts.note(from.scope, from.channel, item).catch((error: unknown) => {
          const { tenantId } = from.scope;
          this.#options.log.error({ tenantId, channel: from.channel, state: item.state, err: error }, 'a receipt could not be noted');
        });
        return this.#count(from, item.kind, item.state);
      }
      case 'callback': {
        background(this.#acknowledge(from, item.callbackId), this.#options.log);
        return this.#count(from, item.kind, '');
      }
      case 'ignored': {
        return this.#count(from, item.kind, item.reason);
      }
      case 'unreachable':
      case 'reachable': {
        await from.scope.contacts.noteReach(from.channel, item.conversationId, item.kind);
        return this.#count(from, item.kind, '');
      }
      case 'retraction': {
        return this.#count(from, item.kind, await takeBack(this.#options.turns, from, item));
      }
    }
  }

  /** Nothing is sent or received under a revoked token any more. */
  async #revoke({ scope, channel }: BoundChannel, { reason }: InboundRevocation): Promise<void> {
    const { log } = this.#options;
    const message = `${toAppName(channel)} has revoked the access (${reason}); connect it again.`;
    await scope.channels.setDisabled(channel, message);
    await scope.channels.noteError(channel, { code: 'revoked', message });
    log.warn({ tenantId: scope.tenantId, channel, reason }, 'a channel was disabled: its access was revoked');
  }

  async #acknowledge({ scope, channel }: BoundChannel, callbackId: string): Promise<void> {
    const settings = await scope.channels.open(channel);
    if (settings === undefined) return;
    const sender = openSender(readBinding(channel, settings), { urls: this.#options.providerUrls, timeoutMs: CALLBACK_TIMEOUT_MS });
    await sender.acknowledge?.(callbackId, answerDeadline(CALLBACK_TIMEOUT_MS));
  }

  #count({ channel }: BoundChannel, kind: InboundItem['kind'], reason: string): void {
    this.#options.metrics.itemEnded(channel, kind, reason);
  }
}

function toOutcome(outcome: TurnReceipt | AppError | undefined): Outcome {
  if (outcome instanceof AppError) return outcome.code === 'session_busy' ? 'busy' : 'overflow';
  return outcome?.replayed === true ? 'duplicate' : 'accepted';
}
