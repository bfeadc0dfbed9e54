import { builtInAgent, type Authority, type BusyPolicy, type ChannelName } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { TurnReceipt, Turns } from '@concierge/turn';
import type { Caller } from '../http/call.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { Admission } from './admission.ts';
import { resolveAttachments, type GivenAttachment } from './attachments.ts';
import { requestHash } from './request-hash.ts';
import type { StreamQuota } from './stream-quota.ts';

export interface AcceptOptions {
  readonly turns: Pick<Turns, 'accept'>;
  readonly admission: Admission;
  readonly streamQuota: StreamQuota;
  readonly metrics: Pick<GatewayMetrics, 'accepts'>;
}

/** What somebody says to an agent, through whichever door. */
export interface Said {
  readonly agent: string;
  readonly authority: Authority;
  readonly channel: ChannelName;
  readonly sender: string | null;
  readonly contactId: string | null;
  readonly message: string;
  /** What the application through which it comes says before it. */
  readonly preface?: string;
  readonly attachments: readonly GivenAttachment[];
  /** What makes the attachments of two requests the same: their ids unless said. */
  readonly attachmentKeys?: readonly string[];
  /** What makes two requests the same where it is not `message` and `contactId` themselves. */
  readonly hashed?: { readonly message: string; readonly contactId: string | null };
  readonly busy: BusyPolicy;
}

/** The same, by somebody with a key. */
export interface ChatRequest extends Said {
  readonly idempotencyKey: string | undefined;
}

/** Under whose name it is accepted. */
interface Speaker {
  readonly scope: TenantScope;
  readonly keyId: string | null;
  readonly dedupeId: string | null;
}

/** As `acceptSaid`, with what the caller's key and `Idempotency-Key` make of it. */
export async function acceptChat(options: AcceptOptions, { scope, key }: Caller, asked: ChatRequest): Promise<TurnReceipt> {
  const { idempotencyKey, ...said } = asked;
  const dedupeId = idempotencyKey === undefined ? null : `api:${idempotencyKey}`;
  return acceptSaid(options, { scope, keyId: key.id, dedupeId }, said);
}

/** The way of every door into the turn path. @throws AppError as `Turns.accept` says, `overloaded`, `rate_limited`, `invalid_request` (attachments) */
export async function acceptSaid(options: AcceptOptions, speaker: Speaker, said: Said): Promise<TurnReceipt> {
  await options.streamQuota.refuseWhenFull(speaker.scope);
  return options.admission.run(async () => accept(options, speaker, said));
}

async function accept({ turns, metrics }: AcceptOptions, { scope, keyId, dedupeId }: Speaker, asked: Said): Promise<TurnReceipt> {
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
