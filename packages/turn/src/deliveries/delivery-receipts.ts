import { hash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { RedisScript } from '@concierge/runtime';
import { ReceiptState, type MessagingChannel, type DeliveryProblem, type DeliveryStep } from '@concierge/contract';
import type { Delivery, SentPart, TenantScope } from '@concierge/tenant';
import { keyOf } from '../keys.ts';

/** A provider may send a receipt before the answer to our request is recorded. */
const EARLY_SECONDS = 3600;
const EARLY_MAX = 20;
/**
 * The number of a tenant's messages whose early receipts are kept: receipts are early by moments, and a signer for a
 * tenant may name messages that never existed.
 */
const EARLY_MESSAGES_MAX = 2000;
const CODE_MAX_CHARACTERS = 100;
const ID_MAX_CHARACTERS = 512;

const keepEarly = new RedisScript(new URL('./early-receipt.lua', import.meta.url));
/** A receipt that is repeated within this time may come after a process that died before it reported the state. */
const REPORTED_AGAIN_MS = 24 * 3600 * 1000;

/** A provider's receipt for messages of ours, as the channel adapter reads it. */
const Receipt = z.object({
  /** null: all to this recipient up to `upToMs`. */
  messageId: z.string().nullable(),
  upToMs: z.number().nullable(),
  recipient: z.string().nullable(),
  state: ReceiptState,
  /** Only for `failed`. */
  errorCodes: z.array(z.string()).readonly(),
  /** Our reference, sent with the message, where the provider returns it: `<message id>.<part>`. */
  reference: z.string().optional(),
});
export type DeliveryReceipt = Readonly<z.infer<typeof Receipt>>;

const ownReference = /^(?<messageId>m_[0-9a-f]{32})\.(?<part>\d{1,6})$/u;

/**
 * Reports a state that a message has reached. Called once the state is on disk, and again by a process that repeats the
 * work of a dead one.
 */
export type DeliveryReported = (scope: TenantScope, delivery: Delivery) => Promise<void>;

export interface DeliveryReceiptsOptions {
  readonly redis: Redis;
  readonly onReported: DeliveryReported;
  readonly now?: () => number;
}

interface OneReceipt {
  readonly channel: MessagingChannel;
  readonly messageId: string;
  readonly receipt: DeliveryReceipt;
}

/**
 * Receipts: what providers report about messages after they accepted them. Receipts come late, early, twice and in any
 * order; a state only moves forward.
 */
export class DeliveryReceipts {
  readonly #options: DeliveryReceiptsOptions;

  constructor(options: DeliveryReceiptsOptions) {
    this.#options = options;
  }

  /**
   * Records a receipt; news is on disk when it returns. A receipt for an unknown message is dropped after an hour, or
   * sooner when many more arrive.
   */
  async note(scope: TenantScope, channel: MessagingChannel, receipt: DeliveryReceipt): Promise<void> {
    const { messageId } = receipt;
    if (messageId === null) {
      await this.#noteUpTo(scope, channel, receipt);
      return;
    }
    if (await this.#noteOne(scope, { channel, messageId, receipt })) return;
    const key = earlyKey(scope, channel, messageId);
    const kept = { receiptsMax: EARLY_MAX, keptSeconds: EARLY_SECONDS, messagesMax: EARLY_MESSAGES_MAX };
    const given = JSON.stringify({ receipt: JSON.stringify(toStoredReceipt(receipt)), ...kept });
    await keepEarly.run(this.#options.redis, [key, keyOf.earlyReceiptsOf(scope.tenantId)], [given]);
    // The sender may have looked for early receipts right before this one was kept.
    await this.#noteOne(scope, { channel, messageId, receipt });
  }

  /** Applies receipts that arrived before their message was known by this id. Call it once the id is recorded. */
  async catchUp(scope: TenantScope, channel: MessagingChannel, messageId: string): Promise<void> {
    const key = earlyKey(scope, channel, messageId);
    for (const text of await this.#options.redis.lrange(key, 0, -1)) {
      await this.#noteOne(scope, { channel, messageId, receipt: Receipt.parse(JSON.parse(text)) });
    }
  }

  async #noteOne(scope: TenantScope, { channel, messageId, receipt }: OneReceipt): Promise<boolean> {
    const sent = (await scope.outbox.findSent(channel, messageId)) ?? (await this.#findByReference(scope, { channel, messageId, receipt }));
    const delivery = sent === undefined ? undefined : await scope.outbox.delivery(sent.messageId);
    if (sent === undefined || delivery === undefined) return false;
    // It was sent again since: that an earlier try failed is known, and says nothing about the new one.
    if (receipt.state === 'failed' && delivery.parts?.[sent.part]?.providerMessageId !== messageId) return true;
    await this.#apply(scope, delivery, { parts: [sent.part], receipt });
    return true;
  }

  /**
   * The provider's answer to our request never arrived or is not recorded yet; a receipt that carries our reference
   * proves that the provider has the message. This is recorded like a late answer, together with the provider's own id,
   * by which the next receipt finds the message.
   */
  async #findByReference(
    scope: TenantScope,
    { channel, messageId: providerMessageId, receipt }: OneReceipt,
  ): Promise<SentPart | undefined> {
    const named = providerMessageId.length > ID_MAX_CHARACTERS ? undefined : parseReference(receipt.reference);
    const delivery = named && (await scope.outbox.delivery(named.messageId));
    if (named === undefined || delivery?.message.channel !== channel) return undefined;
    const tries = delivery.parts?.[named.part]?.tries ?? 0;
    if (tries === 0) return undefined;
    const at = new Date((this.#options.now ?? Date.now)()).toISOString();
    const sent = { kind: 'result', at, part: named.part, try: tries, outcome: 'sent', providerMessageId } as const;
    await scope.outbox.record(named.messageId, [sent]);
    return named;
  }

  async #noteUpTo(scope: TenantScope, channel: MessagingChannel, receipt: DeliveryReceipt): Promise<void> {
    const { recipient, upToMs } = receipt;
    if (recipient === null || upToMs === null) return;
    for (const delivery of await scope.outbox.sentTo(channel, recipient)) {
      const parts = (delivery.parts ?? []).flatMap((part, index) =>
        part.sentAtMs !== undefined && part.sentAtMs <= upToMs ? [index] : [],
      );
      await this.#apply(scope, delivery, { parts, receipt });
    }
  }

  async #apply(
    scope: TenantScope,
    before: Delivery,
    { parts, receipt }: { parts: readonly number[]; receipt: DeliveryReceipt },
  ): Promise<void> {
    const nowMs = (this.#options.now ?? Date.now)();
    const at = new Date(nowMs).toISOString();
    const problem = receipt.state === 'failed' ? toProblem(receipt) : undefined;
    const steps = parts.map((part): DeliveryStep => ({ kind: 'receipt', at, part, state: receipt.state, ...(problem && { problem }) }));
    const news = steps.filter((step) => isNews(before, step));
    if (news.length === 0) {
      const isOfLate = nowMs - Date.parse(before.updatedAt) < REPORTED_AGAIN_MS;
      if (isOfLate && before.state !== 'waiting' && steps.some((step) => isKnown(before, step)))
        await this.#options.onReported(scope, before);
      return;
    }
    const after = await scope.outbox.record(before.message.id, news);
    if (after === undefined) return;
    if (problem !== undefined && after.state === 'failed') await scope.channels.noteError(after.message.channel, problem);
    if (after.state !== before.state && after.state !== 'waiting') await this.#options.onReported(scope, after);
  }
}

function parseReference(reference = ''): SentPart | undefined {
  const { messageId, part } = ownReference.exec(reference)?.groups ?? {};
  return messageId === undefined ? undefined : { messageId, part: Number(part) };
}

/** Would the receipt change the message's view? */
function isNews(delivery: Delivery, step: DeliveryStep): boolean {
  if (step.kind !== 'receipt') return false;
  return delivery.with([step]).parts?.[step.part]?.receipt !== delivery.parts?.[step.part]?.receipt;
}

/** The receipt repeats the last state. */
function isKnown({ parts }: Delivery, step: DeliveryStep): boolean {
  return step.kind === 'receipt' && parts?.[step.part]?.receipt === step.state;
}

function toProblem({ errorCodes }: DeliveryReceipt): DeliveryProblem {
  const code = errorCodes[0] ?? 'failed';
  return { code: code.slice(0, CODE_MAX_CHARACTERS), message: 'The provider took the message and could not deliver it.' };
}

/** Only the fields that are used, however much was sent. */
function toStoredReceipt({ state, errorCodes }: DeliveryReceipt): DeliveryReceipt {
  const codes = errorCodes.slice(0, 1).map((code) => code.slice(0, CODE_MAX_CHARACTERS));
  return { messageId: null, upToMs: null, recipient: null, state, errorCodes: codes };
}

/** The provider's own id may be of any length. */
function earlyKey({ tenantId }: TenantScope, channel: MessagingChannel, messageId: string): string {
  return keyOf.earlyReceipts(`${tenantId}/${channel}/${hash('sha256', messageId, 'base64url')}`);
}
