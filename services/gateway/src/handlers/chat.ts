import { AppError, type BusyPolicy, type ChannelName, type ChatReply } from '@concierge/contract';
import { callableAgent } from '../chat/key-permissions.ts';
import type { MessageAcceptance, UserMessage, GivenAttachment } from '../chat/message-acceptance.ts';
import { streamed, type Call, type Caller, type Handlers } from '../http/call.ts';
import { goneSignal, readRequestContext, sourceOfCaller } from '../http/request-context.ts';
import { replyFormat, type Replies } from '../sse/replies.ts';

export interface ChatOptions {
  readonly acceptance: MessageAcceptance;
  readonly replies: Replies;
}

type ChatAnswer = typeof streamed | { readonly kind: 'answer'; readonly status: 200; readonly json: ChatReply };

/** What all chat endpoints have in common once they are parsed. */
interface ChatCall extends Pick<Call, 'request' | 'response'> {
  readonly caller: Caller;
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
    chatWithAdmin: async (call) => chat(options, call, toUserMessage(call, { agent: 'admin', authority: 'admin' })),
    chatWithCs: async (call) => chat(options, call, toUserMessage(call, { agent: 'cs', authority: 'cs' })),
    chatWithAgent: async (call) => {
      const { access } = await callableAgent(call.caller, call.params.agent);
      if (call.params.agent === 'admin') refuseContacts(call.body);
      return chat(options, call, toUserMessage(call, { agent: call.params.agent, authority: access }));
    },
  };
}

function toUserMessage({ query, body }: ChatCall, whom: Pick<UserMessage, 'agent' | 'authority'>): UserMessage {
  return {
    ...whom,
    channel: body.channel ?? 'web',
    sender: body.sender ?? null,
    contactId: body.contact_id ?? null,
    text: body.message,
    attachments: body.attachments ?? [],
    busy: query.busy,
  };
}

/**
 * The owner has no channel and is no contact: as strict as the endpoint of this agent alone.
 * @throws AppError invalid_request
 */
function refuseContacts(body: ChatCall['body']): void {
  const errors = (['sender', 'channel'] as const)
    .filter((field) => body[field] !== undefined)
    .map((field) => ({ path: field, message: 'is not for the agent admin' }));
  if (errors.length > 0) throw new AppError('invalid_request', undefined, { errors });
}

async function chat({ acceptance, replies }: ChatOptions, call: ChatCall, message: UserMessage): Promise<ChatAnswer> {
  const { response, caller, headers } = call;
  replies.refuseWhenFull(caller.key.id);
  const { turnId, replayed } = await acceptance.accept(sourceOfCaller(caller, headers['idempotency-key'], call.request), message);
  readRequestContext(response).turnId = turnId;
  if (replayed) response.setHeader('Idempotency-Replayed', 'true');
  const { scope, key } = caller;
  if (replyFormat(call.request) === 'json')
    return { kind: 'answer', status: 200, json: await replies.fold({ scope, turnId }, goneSignal(response)) };
  replies.stream(response, { scope, turnId, keyId: key.id, after: null });
  return streamed;
}
