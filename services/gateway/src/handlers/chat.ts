import { AppError, builtInAgent, type Authority, type BusyPolicy, type ChannelName, type ChatReply } from '@concierge/contract';
import type { TurnStreams, Turns } from '@concierge/turn';
import type { Admission } from '../chat/admission.ts';
import { callableAgent } from '../chat/callable-agent.ts';
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

/** A chat request to an agent, its own words only. */
interface ChatRequest {
  readonly agent: string;
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

/** What all chat endpoints have in common once they are parsed. */
interface SpokenCall extends ChatCall {
  readonly query: { readonly busy: BusyPolicy };
  readonly headers: { readonly 'idempotency-key'?: string | undefined };
  readonly body: {
    readonly message: string;
    readonly contact_id?: string | undefined;
    readonly sender?: string | undefined;
    readonly channel?: ChannelName | undefined;
    readonly attachments?: readonly GivenAttachment[] | undefined;
  };
}

/** Accepts a turn and answers with it: as events, or folded into one JSON object. */
export function chatHandlers(options: ChatOptions): Pick<Handlers, 'chatWithAdmin' | 'chatWithCs' | 'chatWithAgent'> {
  return {
    chatWithAdmin: async (call) => chat(options, call, requestOf(call, { agent: 'admin', authority: 'admin' })),
    chatWithCs: async (call) => chat(options, call, requestOf(call, { agent: 'cs', authority: 'cs' })),
    chatWithAgent: async (call) => {
      const { access } = await callableAgent(call.caller, call.params.agent);
      if (call.params.agent === 'admin') refuseContacts(call.body);
      return chat(options, call, requestOf(call, { agent: call.params.agent, authority: access }));
    },
  };
}

function requestOf({ query, headers, body }: SpokenCall, whom: Pick<ChatRequest, 'agent' | 'authority'>): ChatRequest {
  return {
    ...whom,
    channel: body.channel ?? 'web',
    sender: body.sender ?? null,
    contactId: body.contact_id ?? null,
    message: body.message,
    attachments: body.attachments ?? [],
    busy: query.busy,
    idempotencyKey: headers['idempotency-key'],
  };
}

/** The owner has no channel and is no contact: as strict as the endpoint of this agent alone. @throws AppError invalid_request */
function refuseContacts(body: SpokenCall['body']): void {
  const errors = (['sender', 'channel'] as const)
    .filter((field) => body[field] !== undefined)
    .map((field) => ({ path: field, message: 'is not for the agent admin' }));
  if (errors.length > 0) throw new AppError('invalid_request', undefined, { errors });
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
  const stop = metrics.accepts.startTimer({ agent: builtInAgent(asked.agent)?.name ?? 'custom' });
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
