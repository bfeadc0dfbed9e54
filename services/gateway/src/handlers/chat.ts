import { AppError, type Authority, type BusyPolicy, type ChannelName, type ChatReply } from '@concierge/contract';
import type { TurnStreams, Turns } from '@concierge/turn';
import type { Admission } from '../chat/admission.ts';
import { resolveAttachments, type GivenAttachment } from '../chat/attachments.ts';
import { replyFormat } from '../chat/reply-format.ts';
import { requestHash } from '../chat/request-hash.ts';
import { streamed, type Call, type Caller, type Handlers } from '../http/call.ts';
import type { Drain } from '../http/drain.ts';
import { exchangeOf } from '../http/exchange.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { EventStreams } from '../sse/event-streams.ts';

export interface ChatOptions {
  readonly turns: Pick<Turns, 'accept'>;
  readonly turnStreams: Pick<TurnStreams, 'fold'>;
  readonly eventStreams: EventStreams;
  readonly admission: Admission;
  readonly drain: Drain;
  readonly metrics: GatewayMetrics;
}

/** A chat request of either agent, its own words only. */
interface ChatRequest {
  readonly agent: 'admin' | 'cs';
  readonly authority: Authority;
  readonly channel: ChannelName;
  readonly sender: string | null;
  readonly contactId: string | null;
  readonly message: string;
  readonly attachments: readonly GivenAttachment[];
  readonly busy: BusyPolicy;
  readonly idempotencyKey: string | undefined;
}

type ChatCall = Pick<Call, 'request' | 'response'> & { readonly caller: Caller };
type ChatAnswer = typeof streamed | { readonly kind: 'answer'; readonly status: 200; readonly json: ChatReply };

/** Accepts a turn and answers with it: as events, or folded into one JSON object. */
export function chatHandlers(options: ChatOptions): Pick<Handlers, 'chatWithAdmin' | 'chatWithCs'> {
  return {
    chatWithAdmin: async (call) =>
      chat(options, call, {
        agent: 'admin',
        authority: 'admin',
        channel: 'web',
        sender: null,
        contactId: call.body.contact_id ?? null,
        message: call.body.message,
        attachments: call.body.attachments ?? [],
        busy: call.query.busy,
        idempotencyKey: call.headers['idempotency-key'],
      }),
    chatWithCs: async (call) =>
      chat(options, call, {
        agent: 'cs',
        authority: 'cs',
        channel: call.body.channel,
        sender: call.body.sender ?? null,
        contactId: call.body.contact_id ?? null,
        message: call.body.message,
        attachments: call.body.attachments ?? [],
        busy: call.query.busy,
        idempotencyKey: call.headers['idempotency-key'],
      }),
  };
}

async function chat(options: ChatOptions, call: ChatCall, asked: ChatRequest): Promise<ChatAnswer> {
  const { response, caller } = call;
  options.eventStreams.refuseWhenFull(caller.key.id);
  const { turnId, replayed } = await options.admission.run(async () => acceptChat(options, caller, asked));
  exchangeOf(response).turnId = turnId;
  if (replayed) response.setHeader('Idempotency-Replayed', 'true');
  if (replyFormat(call.request) === 'json') return answerFolded(options, call, turnId);
  options.eventStreams.serve(response, { scope: caller.scope, turnId, keyId: caller.key.id, after: null });
  return streamed;
}

async function acceptChat({ turns, metrics }: ChatOptions, { scope, key }: Caller, asked: ChatRequest): ReturnType<Turns['accept']> {
  const stop = metrics.accepts.startTimer({ agent: asked.agent });
  const attachments = await resolveAttachments(scope, asked.attachments);
  const { agent, authority, channel, sender, contactId, message, busy, idempotencyKey } = asked;
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
    requestHash: requestHash({ agent, message, contactId, sender, channel, attachmentIds: attachments.map(({ id }) => id) }),
    keyId: key.id,
  });
  stop();
  return receipt;
}

async function answerFolded({ turnStreams, drain }: ChatOptions, { response, caller }: ChatCall, turnId: string): Promise<ChatAnswer> {
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort();
  });
  const folded = await turnStreams.fold(caller.scope, turnId, AbortSignal.any([gone.signal, drain.ended]));
  if (folded.kind === 'error') throw new AppError(folded.error.code, folded.error.message);
  return { kind: 'answer', status: 200, json: folded.reply };
}
