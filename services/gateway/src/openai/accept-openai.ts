import { AgentName, AppError, limits, type AgentDefinition, type ChatCompletionBody, type ResponseBody } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import type { HistoryCursor, TurnReceipt } from '@concierge/turn';
import type { Response } from 'express';
import { callableAgent } from '../chat/key-permissions.ts';
import type { MessageAcceptance } from '../chat/message-acceptance.ts';
import type { Caller } from '../http/call.ts';
import { goneSignal, readRequestContext, sourceOfCaller } from '../http/request-context.ts';
import type { Replies } from '../sse/replies.ts';
import { composeMessage } from './compose-message.ts';
import type { GivenFiles } from './given-files.ts';
import { hashMessages, readGivenHistory, type HistoryOwner, type KnownHistories } from './known-histories.ts';
import { noModel } from './models.ts';
import type { ReplyFacts } from './reply-encoder.ts';
import type { ReceivedMessage } from './openai-messages.ts';

export interface AcceptOpenAiOptions {
  readonly acceptance: MessageAcceptance;
  readonly replies: Replies;
  readonly givenFiles: GivenFiles;
  readonly knownHistories: KnownHistories;
  readonly log: Log;
}

/** A call of either API. */
export interface OpenAiCall {
  readonly response: Response;
  readonly caller: Caller;
  readonly headers: { readonly 'idempotency-key'?: string | undefined };
  readonly body: Pick<ChatCompletionBody | ResponseBody, 'model' | 'user' | 'safety_identifier'>;
}

export interface OpenAiQuestion {
  readonly said: readonly ReceivedMessage[];
  /** The field of the request that holds it. */
  readonly param: 'messages' | 'input';
  /** The conversation it goes on with. */
  readonly contactId: string | null;
}

/** `user`s are a separate name space: `default` of one application is not the sender of that name elsewhere. */
const SENDER_PREFIX = 'openai:';

/**
 * Turns what a caller sent into a turn of the agent that it calls its model.
 * @throws AppError as `MessageAcceptance.accept`; `not_found`, `scope_required` (model), `invalid_request`, and as
 * `GivenFiles.keep`
 */
export async function acceptOpenAi(
  options: AcceptOpenAiOptions,
  call: OpenAiCall,
  { said, param, contactId }: OpenAiQuestion,
): Promise<ReplyFacts> {
  const { response, caller, headers, body } = call;
  const agent = await findModelAgent(caller, body.model);
  const sender = toSender(body);
  const isKept = contactId !== null || sender !== null;
  const composed = composeMessage(said, { param, continues: isKept });
  options.replies.refuseWhenFull(caller.key.id);
  const owner = { scope: caller.scope, keyId: caller.key.id, agent: agent.name };
  const accept = async (found: FoundHistory | null): Promise<TurnReceipt> => {
    const { text, preface, files } = found === null ? composed : composeMessage(said, { param, continues: true });
    const terms = { publicOnly: agent.access === 'cs', signal: goneSignal(response) };
    const { refs, keys } = await options.givenFiles.keep(caller.scope, files, terms);
    return options.acceptance.accept(sourceOfCaller(caller, headers['idempotency-key'], response.req), {
      agent: agent.name,
      authority: agent.access,
      channel: 'web',
      sender,
      contactId: found?.cursor.sessionId ?? contactId,
      text,
      ...(preface !== undefined && { preface }),
      attachments: refs,
      // A repeated request finds its conversation further on.
      identity: {
        message: [composed.preface ?? '', composed.text].join('\n\n'),
        contactId,
        attachmentKeys: composed.newFiles === 0 ? [] : keys.slice(-composed.newFiles),
      },
      busy: 'queue',
    });
  };
  const { turnId, sessionId, replayed } = isKept ? await accept(null) : await acceptHistory(options, owner, { said, accept });
  readRequestContext(response).turnId = turnId;
  response.setHeader('X-Concierge-Turn-Id', turnId);
  response.setHeader('X-Concierge-Contact-Id', sessionId);
  if (replayed) response.setHeader('Idempotency-Replayed', 'true');
  return { turnId, contactId: sessionId, model: agent.name, createdAt: Math.floor(Date.now() / 1000) };
}

/** A conversation that was recognised by its history. */
interface FoundHistory {
  /** Digest of the history up to its last answer. */
  readonly asked: string;
  readonly cursor: HistoryCursor;
}

interface GivenMessages {
  readonly said: readonly ReceivedMessage[];
  readonly accept: (found: FoundHistory | null) => Promise<TurnReceipt>;
}

/** Goes on with the conversation that ends as the history does; what is refused leaves it to be found again. */
async function acceptHistory(options: AcceptOpenAiOptions, owner: HistoryOwner, { said, accept }: GivenMessages): Promise<TurnReceipt> {
  const found = await findHistory(options, owner, said);
  try {
    const receipt = await accept(found);
    await rememberHistory(options, owner, { asked: hashMessages(said), cursor: receipt });
    return receipt;
  } catch (error) {
    if (found !== null) await rememberHistory(options, owner, found);
    throw error;
  }
}

/** Without Redis a conversation is not recognised; its history goes to the agent as text instead. */
async function findHistory(
  { knownHistories, log }: AcceptOpenAiOptions,
  owner: HistoryOwner,
  said: readonly ReceivedMessage[],
): Promise<FoundHistory | null> {
  const history = readGivenHistory(said);
  if (history === null) return null;
  const cursor = await knownHistories.take(owner, history).catch((error: unknown) => {
    log.warn({ err: error, tenantId: owner.scope.tenantId }, 'cannot look for the conversation of a history');
    return null;
  });
  return cursor === null ? null : { asked: history.asked, cursor };
}

async function rememberHistory(
  { knownHistories, log }: AcceptOpenAiOptions,
  owner: HistoryOwner,
  { asked, cursor }: FoundHistory,
): Promise<void> {
  await knownHistories.remember(owner, asked, cursor).catch((error: unknown) => {
    log.warn({ err: error, turnId: cursor.turnId }, 'the conversation of a history will not be recognised');
  });
}

async function findModelAgent(caller: Caller, name: string): Promise<AgentDefinition> {
  if (!AgentName.safeParse(name).success) throw noModel(name);
  return callableAgent(caller, name).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error;
    throw noModel(name);
  });
}

/** Each user is one sender, with every agent. */
function toSender({ user, safety_identifier: newer }: OpenAiCall['body']): string | null {
  const name = user ?? newer ?? '';
  if (name === '') return null;
  const sender = SENDER_PREFIX + name;
  if (sender.length <= limits.senderMaxCharacters) return sender;
  const most = limits.senderMaxCharacters - SENDER_PREFIX.length;
  throw new AppError('invalid_request', undefined, {
    errors: [{ path: 'user', message: `must be at most ${String(most)} characters long` }],
  });
}
