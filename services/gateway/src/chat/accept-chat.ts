import { builtInAgent, type Authority, type BusyPolicy, type ChannelName } from '@concierge/contract';
import type { TurnReceipt, Turns } from '@concierge/turn';
import type { Caller } from '../http/call.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { Admission } from './admission.ts';
import { resolveAttachments, type GivenAttachment } from './attachments.ts';
import { requestHash } from './request-hash.ts';

export interface AcceptOptions {
  readonly turns: Pick<Turns, 'accept'>;
  readonly admission: Admission;
  readonly metrics: Pick<GatewayMetrics, 'accepts'>;
}

/** What somebody with a key says to an agent, through whichever door. */
export interface ChatRequest {
  readonly agent: string;
  readonly authority: Authority;
  readonly channel: ChannelName;
  readonly sender: string | null;
  readonly contactId: string | null;
  readonly message: string;
  readonly attachments: readonly GivenAttachment[];
  /** What makes the attachments of two requests the same: their ids unless said. */
  readonly attachmentKeys?: readonly string[];
  readonly busy: BusyPolicy;
  readonly idempotencyKey: string | undefined;
}

/** The way of every door into the turn path. @throws AppError as `Turns.accept` says, `overloaded`, `invalid_request` (attachments) */
export async function acceptChat(options: AcceptOptions, caller: Caller, asked: ChatRequest): Promise<TurnReceipt> {
  return options.admission.run(async () => accept(options, caller, asked));
}

async function accept({ turns, metrics }: AcceptOptions, { scope, key }: Caller, asked: ChatRequest): Promise<TurnReceipt> {
  const stop = metrics.accepts.startTimer({ agent: builtInAgent(asked.agent)?.name ?? 'custom' });
  const attachments = await resolveAttachments(scope, asked.attachments);
  const { agent, authority, channel, sender, contactId, message, busy, idempotencyKey } = asked;
  const attachmentKeys = asked.attachmentKeys ?? attachments.map(({ id }) => id);
  const receipt = await turns.accept(scope, {
    origin: 'api',
    agent,
    authority,
    channel,
    sender,
    contactId,
    text: message,
    attachments,
    busy,
    dedupeId: idempotencyKey === undefined ? null : `api:${idempotencyKey}`,
    requestHash: requestHash({ agent, message, contactId, sender, channel, attachmentKeys }),
    keyId: key.id,
  });
  stop();
  return receipt;
}
