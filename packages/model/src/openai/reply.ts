import type { ToolCall } from '@concierge/contract';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import type { ModelFinishReason } from '../model.ts';
import { brokenStream, failureInStream, runawayReply } from './call-failure.ts';
import { Chunk, plainTextChunk, textOfContent, type ChunkUsage } from './chunk.ts';
import { ToolCallSlots } from './tool-call-slots.ts';

/**
 * The limit of all chunks of one reply, far above the longest there is; what comes over it is a fault, and memory is
 * finite.
 */
const MAX_REPLY_CHARACTERS = 64 * 1024 * 1024;

export interface FinishedReply {
  readonly text: string;
  readonly toolCalls: ToolCall[];
  readonly finishReason: ModelFinishReason;
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

/** A reply as its chunks come in. */
export class Reply {
  readonly #calls = new ToolCallSlots();
  #text = '';
  #unsent = '';
  #received = 0;
  #finishReason: string | undefined;
  #usage: ChunkUsage | undefined;
  #closed = false;

  /** The data of one server-sent event. Throws `CallFailure` on anything that is no chunk, and on a reported error. */
  add(data: string): void {
    if (data === '[DONE]') {
      this.#closed = true;
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

  /** Text or a tool call has begun. */
  get started(): boolean {
    return this.#text !== '' || this.#calls.size > 0;
  }

  /** The model is done; only usage may follow. */
  get finished(): boolean {
    return this.#finishReason !== undefined;
  }

  /** The provider has announced the end of the reply. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Throws `CallFailure` when the reply has not finished. */
  finish(): FinishedReply {
    if (this.#finishReason === undefined) throw brokenStream('the stream ended before the reply did');
    if (failedReasons.has(this.#finishReason)) throw brokenStream(`the provider gave up: ${this.#finishReason}`);
    if (this.#calls.nameless) throw brokenStream('a tool call came without a name');
    return {
      text: this.#text,
      toolCalls: this.#calls.finish(),
      finishReason: this.#mapFinishReason(this.#finishReason),
      usage: this.#usage,
    };
  }

  /** Calls decide between `stop` and `tool_calls`: servers exist that confuse them either way. */
  #mapFinishReason(reason: string): ModelFinishReason {
    return finishReasons[reason] ?? (this.#calls.size > 0 ? 'tool_calls' : 'stop');
  }

  #addChoice({ delta, finish_reason: finishReason }: NonNullable<Chunk['choices']>[number]): void {
    const text = textOfContent(delta?.content) + (delta?.refusal ?? '');
    this.#text += text;
    this.#unsent += text;
    for (const call of delta?.tool_calls ?? []) this.#calls.add(call);
    if (finishReason) this.#finishReason = finishReason;
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
