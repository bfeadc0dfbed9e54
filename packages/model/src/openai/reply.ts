import { CallExtra, limits, type ToolCall, type ModelFacts } from '@concierge/contract';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { ModelFinishReason, ModelRequest } from '../model.ts';
import { brokenStream, failureInStream, runawayReply } from './call-failure.ts';
import { CallSignatures, type ReasoningField, type SignatureField } from './dialect.ts';
import { estimateTokens } from '../estimate-tokens.ts';

const ToolCallDelta = z.object({
  index: z.number().nullish(),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
  /** Google's name; one of another shape is not understood, and no reason to refuse the reply. */
  extra_content: CallExtra.nullish().catch(undefined),
});
export type ToolCallDelta = z.infer<typeof ToolCallDelta>;

/** Mistral's reasoning models send `content` in typed parts; the ones without `text` are thoughts. */
const ContentParts = z.array(z.object({ text: z.string().optional().catch(undefined) }));

const Choice = z.object({
  index: z.number().nullish(),
  delta: z
    .object({
      content: z.union([z.string(), ContentParts]).nullish(),
      refusal: z.string().nullish(),
      tool_calls: z.array(ToolCallDelta).nullish(),
      /** Thoughts of DeepSeek, Kimi and others. */
      reasoning_content: z.string().nullish().catch(undefined),
      /** The same of OpenRouter. */
      reasoning: z.string().nullish().catch(undefined),
      reasoning_details: z.array(z.unknown()).nullish().catch(undefined),
    })
    .nullish(),
  finish_reason: z.string().nullish(),
});

const Usage = z.object({
  prompt_tokens: z.number().nonnegative(),
  completion_tokens: z.number().nonnegative(),
  prompt_tokens_details: z.object({ cached_tokens: z.number().nonnegative().nullish() }).nullish(),
  /** DeepSeek's name for cached tokens. */
  prompt_cache_hit_tokens: z.number().nonnegative().nullish(),
});
type ChunkUsage = z.infer<typeof Usage>;

/** One `data:` of a streamed chat completion: what we read of it, as lenient as the many compatible servers need it. */
export const Chunk = z.object({
  choices: z.array(Choice).nullish(),
  usage: Usage.nullish().catch(null),
  error: z.unknown().optional(),
});
export type Chunk = z.infer<typeof Chunk>;
type Choice = z.infer<typeof Choice>;
type Delta = NonNullable<Choice['delta']>;

/**
 * Most chunks by far are one piece of text and nothing else. Those are known at a glance, for a tenth of what the
 * schema costs; for any other the schema decides.
 */
export function plainTextChunk(json: unknown): Chunk | undefined {
  if (!isRecord(json) || json['error'] != null || json['usage'] != null || !Array.isArray(json['choices'])) return undefined;
  const choices: unknown[] = json['choices'];
  const [choice] = choices;
  if (choices.length !== 1 || !isRecord(choice) || choice['finish_reason'] != null) return undefined;
  const content = plainContent(choice['delta']);
  return content === undefined || choice['index'] !== 0 ? undefined : { choices: [{ index: 0, delta: { content } }] };
}

function plainContent(delta: unknown): string | undefined {
  if (!isRecord(delta) || delta['tool_calls'] != null || delta['refusal'] != null) return undefined;
  // Some send empty content along with thoughts.
  if (delta['reasoning_content'] != null || delta['reasoning'] != null) return undefined;
  if (Array.isArray(delta['reasoning_details']) && delta['reasoning_details'].length > 0) return undefined;
  return typeof delta['content'] === 'string' ? delta['content'] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOfContent(content: string | z.infer<typeof ContentParts> | null | undefined): string {
  if (typeof content === 'string') return content;
  return content?.map((part) => part.text ?? '').join('') ?? '';
}

/**
 * The limit of all chunks of one reply, far above the longest there is; what comes over it is a fault, and memory is
 * finite.
 */
const MAX_REPLY_CHARACTERS = 64 * 1024 * 1024;

export interface FinishedReply {
  readonly text: string;
  readonly toolCalls: ToolCall[];
  readonly finishReason: ModelFinishReason;
  /** Missing when there was none. */
  readonly reasoning?: string;
  /** Undefined when the provider gave none. */
  readonly usage: ChunkUsage | undefined;
}

/** The finish reasons of OpenAI, and what others send in their place; an unknown one is an ordinary end. */
const finishReasons: Readonly<Record<string, ModelFinishReason>> = {
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  model_context_window_exceeded: 'length',
  content_filter: 'content_filter',
  safety: 'content_filter',
};
/** OpenRouter and DeepSeek end a failed reply so. */
const failedReasons = new Set(['error', 'insufficient_system_resource']);

/**
 * Reads the data of server-sent events out of text that comes in arbitrary pieces; names and ids mean nothing in this
 * protocol. `feed` throws what `onData` throws, and `CallFailure` for an event that is longer than a whole reply may
 * be.
 */
export function openEventParser(onData: (data: string) => void): EventSourceParser {
  return createParser({
    maxBufferSize: MAX_REPLY_CHARACTERS,
    onEvent: ({ data }) => {
      if (data !== '') onData(data);
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw runawayReply('an event is longer than any reply is');
    },
  });
}

/** The end of a sentence, with what may stand behind it: the text may be over, and a call be what comes next. */
const sentenceEnd = /[.!?:…。！？\n][)\]"'*_`”’»]?\s?$/u;

export interface ReplyOptions {
  /** The model may call some. */
  readonly offersTools: boolean;
  readonly reasoningField?: ReasoningField | undefined;
  readonly signatureField?: SignatureField;
}

/** A reply as its chunks come in. */
export class Reply {
  readonly #offersTools: boolean;
  readonly #calls = new ToolCallSlots();
  readonly #reasoningField: ReasoningField;
  readonly #signatureField: SignatureField;
  readonly #signatures = new CallSignatures();
  #reasoning = '';
  #text = '';
  /** The last piece of it. */
  #lastPiece = '';
  #unsent = '';
  #received = 0;
  #finishReason: string | undefined;
  #usage: ChunkUsage | undefined;
  /** The provider has announced the end of the reply. */
  isClosed = false;

  constructor({ offersTools, reasoningField = 'reasoning_content', signatureField = 'extra_content' }: ReplyOptions) {
    this.#offersTools = offersTools;
    this.#reasoningField = reasoningField;
    this.#signatureField = signatureField;
  }

  /** The data of one server-sent event. Throws `CallFailure` on anything that is no chunk, and on a reported error. */
  add(data: string): void {
    if (data === '[DONE]') {
      this.isClosed = true;
      return;
    }
    this.#received += data.length;
    if (this.#received > MAX_REPLY_CHARACTERS) throw runawayReply('the reply is longer than any reply is');
    const chunk = parseChunk(data);
    if (chunk.error !== undefined && chunk.error !== null) throw failureInStream(chunk.error);
    if (chunk.usage) this.#usage = chunk.usage;
    for (const choice of chunk.choices ?? []) {
      if ((choice.index ?? 0) === 0) this.#addChoice(choice);
    }
  }

  /** The text since the last call, as one piece; empty when there was none. */
  takeText(): string {
    const text = this.#unsent;
    this.#unsent = '';
    return text;
  }

  /**
   * `speaking`: text has begun. `preparing`: a tool call has begun, or may have: with tools the silence after a
   * sentence may be a call that the provider sends in one piece. `finished`: the model is done, and only usage may
   * follow.
   */
  get phase(): 'waiting' | 'speaking' | 'preparing' | 'finished' {
    if (this.finished) return 'finished';
    if (this.#calls.size > 0) return 'preparing';
    if (this.#text === '') return 'waiting';
    return this.#offersTools && sentenceEnd.test(this.#lastPiece) ? 'preparing' : 'speaking';
  }

  /** The model is done; only usage may follow. */
  get finished(): boolean {
    return this.#finishReason !== undefined;
  }

  /** Throws `CallFailure` when the reply has not finished. */
  finish(): FinishedReply {
    if (this.#finishReason === undefined) throw brokenStream('the stream ended before the reply did');
    if (failedReasons.has(this.#finishReason)) throw brokenStream(`the provider gave up: ${this.#finishReason}`);
    if (this.#calls.nameless) throw brokenStream('a tool call came without a name');
    return {
      text: this.#text,
      toolCalls: this.#calls.finish(this.#signatures),
      finishReason: this.#mapFinishReason(this.#finishReason),
      usage: this.#usage,
      ...(this.#reasoning !== '' && { reasoning: this.#reasoning.slice(0, limits.reasoningMaxCharacters) }),
    };
  }

  /** Calls decide between `stop` and `tool_calls`: servers exist that confuse them either way. */
  #mapFinishReason(reason: string): ModelFinishReason {
    return finishReasons[reason] ?? (this.#calls.size > 0 ? 'tool_calls' : 'stop');
  }

  #addChoice({ delta, finish_reason: finishReason }: Choice): void {
    const text = textOfContent(delta?.content) + (delta?.refusal ?? '');
    this.#text += text;
    this.#unsent += text;
    if (text !== '') this.#lastPiece = text;
    for (const call of delta?.tool_calls ?? []) this.#calls.add(call);
    if (delta) this.#addThoughts(delta);
    if (finishReason) this.#finishReason = finishReason;
  }

  #addThoughts(delta: Delta): void {
    if (this.#reasoning.length < limits.reasoningMaxCharacters) this.#reasoning += delta[this.#reasoningField] ?? '';
    if (this.#signatureField === 'reasoning_details') this.#signatures.add(delta.reasoning_details ?? []);
  }
}

function parseChunk(data: string): Chunk {
  let json: unknown;
  try {
    json = JSON.parse(data);
  } catch (error) {
    throw brokenStream('a chunk is not JSON', error);
  }
  const plain = plainTextChunk(json);
  if (plain !== undefined) return plain;
  const parsed = Chunk.safeParse(json);
  if (!parsed.success) throw brokenStream('a chunk has not the shape of one', parsed.error);
  return parsed.data;
}

interface Slot {
  readonly index: number;
  id: string;
  name: string;
  arguments: string;
  extra: CallExtra | undefined;
}

/** Puts tool calls together from their deltas. */
export class ToolCallSlots {
  readonly #slots: Slot[] = [];

  get size(): number {
    return this.#slots.length;
  }

  add(delta: ToolCallDelta): void {
    const slot = this.#findSlot(delta);
    if (delta.id) slot.id = delta.id;
    // Assigned, not appended: some servers repeat the whole name with every delta.
    if (delta.function?.name) slot.name = delta.function.name;
    if (!isToldAgain(slot, delta)) slot.arguments += delta.function?.arguments ?? '';
    // It may come by itself, after the arguments.
    if (delta.extra_content) slot.extra = { ...slot.extra, ...delta.extra_content };
  }

  /** Did some call never get a name? It cannot be run, nor sent back in the history. */
  get nameless(): boolean {
    return this.#slots.some((slot) => slot.name === '');
  }

  /** Ids are kept where the provider gave one that is unique here. */
  finish(signatures?: Pick<CallSignatures, 'find'>): ToolCall[] {
    const taken = new Set<string>();
    return this.#slots.map(({ id, name, arguments: text, extra: given }) => {
      const extra = given ?? signatures?.find(id);
      const unique = id === '' || taken.has(id) ? `call_${randomUUID().replaceAll('-', '')}` : id;
      taken.add(unique);
      const isKept = extra !== undefined && JSON.stringify(extra).length <= limits.callExtraMaxCharacters;
      return { id: unique, name, arguments: text, ...(isKept && { extra }) };
    });
  }

  /** Finds a call by index, unless the delta begins another. */
  #findSlot(delta: ToolCallDelta): Slot {
    const index = delta.index ?? this.#slots.at(-1)?.index ?? 0;
    const slot = this.#slots.findLast((candidate) => candidate.index === index);
    if (slot !== undefined && !beginsAnother(slot, delta)) return slot;
    const opened = { index, id: '', name: '', arguments: '', extra: undefined };
    this.#slots.push(opened);
    return opened;
  }
}

/**
 * Is this a new call with the index of one before it? Servers in front of Gemini send every parallel call with index 0
 * (https://github.com/QuantumNous/new-api/pull/2701), others send no index at all; most give each an id, some give none
 * (https://github.com/continuedev/continue/issues/13225, https://github.com/langchain-ai/langchain/pull/40594). Without
 * an id a name begins a call, but some repeat it with every piece of the arguments
 * (https://github.com/NousResearch/hermes-agent/pull/11984): the same name does so only behind whole arguments.
 */
function beginsAnother(slot: Slot, delta: ToolCallDelta): boolean {
  const name = delta.function?.name ?? '';
  if (name === '') return false;
  if (delta.id && slot.id !== '') return delta.id !== slot.id;
  if (slot.name === '') return false;
  if (name !== slot.name) return true;
  // What is white is the end of the call before it.
  const isMore = (delta.function?.arguments ?? '').trim() !== '';
  return isMore && !isToldAgain(slot, delta) && isWhole(slot.arguments);
}

/** The whole call once more, and not a second one: nothing must be done twice because of a guess. */
function isToldAgain(slot: Slot, { function: told }: ToolCallDelta): boolean {
  return told?.name === slot.name && told.arguments?.trim() === slot.arguments.trim() && isWhole(slot.arguments);
}

/** A JSON object from its first brace to its last. */
function isWhole(text: string): boolean {
  // Most pieces end elsewhere, and are not read again and again.
  if (!text.trimEnd().endsWith('}')) return false;
  try {
    return isRecord(JSON.parse(text));
  } catch {
    return false;
  }
}

interface TokenCounts {
  /** All of the prompt, cached part included. */
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
}

/** As the provider counted. */
export function countTokens(usage: NonNullable<FinishedReply['usage']>): TokenCounts {
  const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? 0;
  return {
    inputTokens: Math.round(usage.prompt_tokens),
    outputTokens: Math.round(usage.completion_tokens),
    cachedInputTokens: Math.min(Math.round(cached), Math.round(usage.prompt_tokens)),
  };
}

/** For a provider that does not count. */
export function estimateUsage(request: ModelRequest, reply: FinishedReply): TokenCounts {
  const prompt = [request.system, ...request.messages.map(listWords)].join('\n');
  const said = [reply.text, ...reply.toolCalls.map((call) => call.name + call.arguments)].join('\n');
  const tools = request.tools.length > 0 ? JSON.stringify(request.tools) : '';
  return { inputTokens: estimateTokens(prompt) + estimateTokens(tools), outputTokens: estimateTokens(said), cachedInputTokens: 0 };
}

function listWords(message: ModelRequest['messages'][number]): string {
  switch (message.role) {
    case 'user':
      return typeof message.content === 'string'
        ? message.content
        : message.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
    case 'assistant':
      return [message.reasoning ?? '', message.text, ...message.toolCalls.map((call) => call.name + call.arguments)].join('\n');
    case 'tool':
      return message.output;
  }
}

/** US dollars of one call; null when the model has no price. Prices are per million tokens. */
export function costUsd(tokens: TokenCounts, price: ModelFacts['price']): number | null {
  if (price === undefined) return null;
  const fresh = Math.max(0, tokens.inputTokens - tokens.cachedInputTokens);
  const cached = tokens.cachedInputTokens * (price.cachedInput ?? price.input);
  return (fresh * price.input + cached + tokens.outputTokens * price.output) / 1_000_000;
}
