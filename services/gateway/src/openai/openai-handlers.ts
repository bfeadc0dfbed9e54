import type { Turns } from '@concierge/turn';
import { AppError, type ChatCompletionBody, type ChatReply, type InvalidField, type ResponseBody, ContactId } from '@concierge/contract';
import { streamed, type Handlers, type Caller } from '../http/call.ts';
import { goneSignal } from '../http/request-context.ts';
import { acceptOpenAi, type AcceptOpenAiOptions, type OpenAiCall } from './accept-openai.ts';
import { ChatCompletionChunks, buildChatCompletion } from './chat-completion.ts';
import { toStreamEncoding, type ReplyEncoder } from './reply-encoder.ts';
import { ResponseEvents, buildResponse } from './response.ts';
import { readResponseInput, readChatMessages } from './openai-messages.ts';
import { toTurnViewer } from '../chat/key-permissions.ts';

export interface OpenAiOptions extends AcceptOpenAiOptions {
  readonly turns: Pick<Turns, 'find'>;
}

/** A turn in the format of OpenAI's APIs: other bodies in, other encoders out, the same turn in between. */
export function openAiHandlers(options: OpenAiOptions): Pick<Handlers, 'createChatCompletion' | 'createResponse'> {
  return {
    createChatCompletion: async (call) => {
      const { body } = call;
      refuseUnsupportedCompletion(body);
      const facts = await acceptOpenAi(options, call, {
        said: readChatMessages(body),
        param: 'messages',
        contactId: readConversation(body),
      });
      if (body.stream !== true)
        return { kind: 'answer', status: 200, json: buildChatCompletion(facts, await fold(options, call, facts.turnId)) };
      const encoder = new ChatCompletionChunks(facts, { withUsage: body.stream_options?.include_usage === true });
      return stream(options, call, { turnId: facts.turnId, encoder });
    },
    createResponse: async (call) => {
      const { body, caller } = call;
      refuseUnsupportedResponse(body);
      const contactId = await readConversationOfResponse(options, caller, body);
      const accepted = await acceptOpenAi(options, call, { said: readResponseInput(body), param: 'input', contactId });
      const { instructions = null, metadata, previous_response_id: previousResponseId = null, user = null } = body;
      const facts = { ...accepted, instructions, metadata: metadata ?? {}, previousResponseId, user };
      if (body.stream !== true) return { kind: 'answer', status: 200, json: buildResponse(facts, await fold(options, call, facts.turnId)) };
      return stream(options, call, { turnId: facts.turnId, encoder: new ResponseEvents(facts) });
    },
  };
}

interface StreamedReply {
  readonly turnId: string;
  readonly encoder: ReplyEncoder;
}

async function fold({ replies }: OpenAiOptions, { response, caller }: OpenAiCall, turnId: string): Promise<ChatReply> {
  return await replies.fold({ scope: caller.scope, turnId }, goneSignal(response));
}

function stream({ replies }: OpenAiOptions, { response, caller }: OpenAiCall, { turnId, encoder }: StreamedReply): typeof streamed {
  const { scope, key } = caller;
  replies.stream(response, { scope, turnId, keyId: key.id, after: null, encoding: toStreamEncoding(encoder) });
  return streamed;
}

type Check = readonly [param: string, asked: boolean, message: string];

const builtInTools = 'are not supported: an agent has its own tools, which run on our side';
const plainText = 'only text can be answered';

/**
 * What a caller would miss if it were ignored, unlike a temperature.
 * @throws AppError `invalid_request` naming each field
 */
function refuseUnsupportedCompletion(body: ChatCompletionBody): void {
  refuse([
    ['n', (body.n ?? 1) !== 1, 'must be 1: an agent answers once'],
    ['tools', isGiven(body.tools) && body.tool_choice !== 'none', builtInTools],
    ['functions', isGiven(body.functions) && body.function_call !== 'none', builtInTools],
    ['logprobs', body.logprobs === true, 'are not supported'],
    ['audio', body.audio != null, plainText],
    ['modalities', body.modalities?.some((modality) => modality !== 'text') ?? false, plainText],
    ['response_format', isStructured(body.response_format), 'must be of type text: an agent\u2019s answer cannot be bound to a schema'],
    ['stop', isGiven(body.stop), 'is not supported: an agent\u2019s answer is not cut'],
  ]);
}

/** The same for the Responses API. @throws AppError `invalid_request` naming each field */
function refuseUnsupportedResponse(body: ResponseBody): void {
  const both = body.conversation != null && body.previous_response_id != null;
  refuse([
    ['tools', isGiven(body.tools) && body.tool_choice !== 'none', builtInTools],
    ['background', body.background === true, 'is not supported: a turn goes on without a waiting client, and GET /api/turns/{id} shows it'],
    ['prompt', body.prompt != null, 'is not supported: prompts are files of the agent'],
    ['text.format', isStructured(body.text?.format), 'must be of type text: an agent\u2019s answer cannot be bound to a schema'],
    ['top_logprobs', (body.top_logprobs ?? 0) > 0, 'are not supported'],
    ['previous_response_id', both, 'cannot be given together with conversation'],
  ]);
}

function refuse(checks: readonly Check[]): void {
  const errors: InvalidField[] = checks.filter(([, asked]) => asked).map(([path, , message]) => ({ path, message }));
  if (errors.length > 0) throw new AppError('invalid_request', undefined, { errors });
}

function isGiven(value: string | readonly unknown[] | null | undefined): boolean {
  return value != null && value.length > 0;
}

function isStructured(format: { readonly type: string } | null | undefined): boolean {
  return format != null && format.type !== 'text';
}

const responseId = /^resp_(?<turnId>t_[0-9a-f]{32})$/u;

/** The conversation that a request goes on with, by its id; null for none. @throws AppError `invalid_request` */
function readConversation({ conversation, metadata }: Pick<ChatCompletionBody, 'conversation' | 'metadata'>): string | null {
  const named = typeof conversation === 'string' ? conversation : (conversation?.id ?? null);
  const noted = metadata?.['contact_id'] ?? null;
  if (noted === null) return named;
  const parsed = ContactId.safeParse(noted);
  if (!parsed.success) throw refused('metadata.contact_id', 'is not a contact_id');
  if (named !== null && named !== parsed.data) throw refused('metadata.contact_id', 'is another one than conversation');
  return parsed.data;
}

interface PreviousOptions {
  readonly turns: Pick<Turns, 'find'>;
}

/**
 * The same for a response, which may name the one before.
 * @throws AppError `not_found` for one that this key may not see
 */
async function readConversationOfResponse({ turns }: PreviousOptions, { scope, key }: Caller, body: ResponseBody): Promise<string | null> {
  const { previous_response_id: previous } = body;
  if (previous == null) return readConversation(body);
  const turnId = responseId.exec(previous)?.groups?.['turnId'];
  const turn = turnId === undefined ? undefined : await turns.find(scope, turnId, toTurnViewer(key));
  if (turn !== undefined) return turn.contact_id;
  throw new AppError('not_found', undefined, { errors: [{ path: 'previous_response_id', message: 'there is no such response' }] });
}

function refused(path: string, message: string): AppError {
  return new AppError('invalid_request', undefined, { errors: [{ path, message }] });
}
