import { AgentName, AppError, limits, type AgentDefinition, type ChatCompletionBody, type ResponseBody } from '@concierge/contract';
import type { Response } from 'express';
import { acceptChat, type AcceptOptions } from '../chat/accept-chat.ts';
import { callableAgent } from '../chat/callable-agent.ts';
import type { Caller } from '../http/call.ts';
import { goneSignal } from '../http/gone-signal.ts';
import { exchangeOf } from '../http/exchange.ts';
import type { EventStreams } from '../sse/event-streams.ts';
import { composeMessage } from './compose-message.ts';
import type { GivenFiles } from './given-files.ts';
import { noModel } from './no-model.ts';
import type { ReplyFacts } from './reply-facts.ts';
import type { Said } from './said.ts';

export interface AcceptSaidOptions extends AcceptOptions {
  readonly eventStreams: Pick<EventStreams, 'refuseWhenFull'>;
  readonly givenFiles: GivenFiles;
}

/** A call of either API. */
export interface OpenAiCall {
  readonly response: Response;
  readonly caller: Caller;
  readonly headers: { readonly 'idempotency-key'?: string | undefined };
  readonly body: Pick<ChatCompletionBody | ResponseBody, 'model' | 'user' | 'safety_identifier'>;
}

export interface SaidBy {
  readonly said: readonly Said[];
  /** Where the request has it. */
  readonly param: 'messages' | 'input';
  /** The conversation it goes on with. */
  readonly contactId: string | null;
}

/** `user`s are a name space of their own: `default` of one application is not the sender of that name elsewhere. */
const SENDER_PREFIX = 'openai:';

/**
 * Turns what a caller sent into a turn of the agent that it calls its model.
 * @throws AppError as `acceptChat` says; `not_found`, `scope_required` (model), `invalid_request`, and as `GivenFiles.keep` says
 */
export async function acceptSaid(options: AcceptSaidOptions, call: OpenAiCall, { said, param, contactId }: SaidBy): Promise<ReplyFacts> {
  const { response, caller, headers, body } = call;
  const agent = await agentOf(caller, body.model);
  const sender = senderOf(agent, body);
  const { text, files } = composeMessage(said, { param, continues: contactId !== null || sender !== null });
  options.eventStreams.refuseWhenFull(caller.key.id);
  const terms = { publicOnly: agent.access === 'cs', signal: goneSignal(response) };
  const { refs, keys } = await options.givenFiles.keep(caller.scope, files, terms);
  const { turnId, sessionId, replayed } = await acceptChat(options, caller, {
    agent: agent.name,
    authority: agent.access,
    channel: 'web',
    sender,
    contactId,
    message: text,
    attachments: refs,
    attachmentKeys: keys,
    busy: 'queue',
    idempotencyKey: headers['idempotency-key'],
  });
  exchangeOf(response).turnId = turnId;
  response.setHeader('X-Concierge-Turn-Id', turnId);
  response.setHeader('X-Concierge-Contact-Id', sessionId);
  if (replayed) response.setHeader('Idempotency-Replayed', 'true');
  return { turnId, contactId: sessionId, model: agent.name, createdAt: Math.floor(Date.now() / 1000) };
}

async function agentOf(caller: Caller, name: string): Promise<AgentDefinition> {
  if (!AgentName.safeParse(name).success) throw noModel(name);
  return callableAgent(caller, name).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error;
    throw noModel(name);
  });
}

/** Only who talks to strangers tells them apart; the owner has no sender, and `user` then is what it is for OpenAI: a label. */
function senderOf({ access }: AgentDefinition, { user, safety_identifier: newer }: OpenAiCall['body']): string | null {
  const name = user ?? newer ?? '';
  if (access === 'admin' || name === '') return null;
  const sender = SENDER_PREFIX + name;
  if (sender.length <= limits.senderMaxCharacters) return sender;
  const most = limits.senderMaxCharacters - SENDER_PREFIX.length;
  throw new AppError('invalid_request', undefined, {
    errors: [{ path: 'user', message: `must be at most ${String(most)} characters long` }],
  });
}
