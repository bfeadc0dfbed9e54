import { AppError, builtInAgent, type Authority, type BusyPolicy, type ChannelName } from '@concierge/contract';
import { Slots } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import type { TurnReceipt, Turns } from '@concierge/turn';
import type { Caller } from '../http/call.ts';
import type { GatewayMetrics } from '../metrics.ts';
import { resolveAttachments, type GivenAttachment } from './attachments.ts';
import { requestHash } from './request-hash.ts';
import type { StreamQuota } from './stream-quota.ts';

/** Turns being accepted at once; several times what a disk stores in a second would only wait. */
const ACCEPTED_AT_ONCE = 2000;

export interface MessageAcceptanceOptions {
  readonly turns: Pick<Turns, 'accept'>;
  readonly streamQuota: Pick<StreamQuota, 'refuseWhenFull'>;
  readonly metrics: Pick<GatewayMetrics, 'accepts'>;
  readonly atOnce?: number;
}

/** A message of an agent user, through any endpoint. */
export interface UserMessage {
  readonly agent: string;
  readonly authority: Authority;
  readonly channel: ChannelName;
  readonly sender: string | null;
  readonly contactId: string | null;
  readonly message: string;
  /** Text that the calling application puts before the message. */
  readonly preface?: string;
  readonly attachments: readonly GivenAttachment[];
  /** What makes the attachments of two requests the same; default: their ids. */
  readonly attachmentKeys?: readonly string[];
  /** The values that make two requests the same where these are not `message` and `contactId` themselves. */
  readonly hashed?: { readonly message: string; readonly contactId: string | null };
  readonly busy: BusyPolicy;
}

/** Under whose name a message is accepted. */
export interface MessageSource {
  readonly scope: TenantScope;
  readonly keyId: string | null;
  readonly dedupeId: string | null;
}

/** The identity that a caller's key and `Idempotency-Key` give it. */
export function sourceOfCaller({ scope, key }: Caller, idempotencyKey: string | undefined): MessageSource {
  return { scope, keyId: key.id, dedupeId: idempotencyKey === undefined ? null : `api:${idempotencyKey}` };
}

/** Accepts the messages of every chat endpoint as turns. */
export class MessageAcceptance {
  readonly #options: MessageAcceptanceOptions;
  readonly #slots: Slots;

  constructor(options: MessageAcceptanceOptions) {
    this.#options = options;
    this.#slots = new Slots(options.atOnce ?? ACCEPTED_AT_ONCE);
  }

  /**
   * A message beyond the capacity is refused before anything is accepted: a service that takes more than it can write
   * down only gets slower for all.
   * @throws AppError as `Turns.accept`, `overloaded`, `rate_limited`, `invalid_request` (attachments)
   */
  async accept({ scope, keyId, dedupeId }: MessageSource, asked: UserMessage): Promise<TurnReceipt> {
    const { turns, streamQuota, metrics } = this.#options;
    await streamQuota.refuseWhenFull(scope);
    using slot = this.#slots.tryTake();
    if (slot === undefined) throw new AppError('overloaded', undefined, { retryAfterSeconds: 1 });
    const stop = metrics.accepts.startTimer({ agent: builtInAgent(asked.agent)?.name ?? 'custom' });
    const attachments = await resolveAttachments(scope, asked.attachments);
    const { agent, authority, channel, sender, contactId, message, preface, busy } = asked;
    const attachmentKeys = asked.attachmentKeys ?? attachments.map(({ id }) => id);
    const receipt = await turns.accept(scope, {
      origin: 'api',
      agent,
      authority,
      channel,
      sender,
      contactId,
      text: message,
      ...(preface !== undefined && { preface }),
      attachments,
      busy,
      dedupeId,
      requestHash: requestHash({ agent, message, contactId, sender, channel, attachmentKeys, ...asked.hashed }),
      keyId,
    });
    stop();
    return receipt;
  }
}
