import {
  AppError,
  type ChatCompletion,
  type ChatReply,
  type CompletionUsage,
  type FinishReason,
  type TurnEvent,
} from '@concierge/contract';
import { AppendOnlyText, type Frame, type ReplyEncoder, type ReplyFacts } from './reply-encoder.ts';
import { toOpenAiError } from './openai-error.ts';

type CompletionFinishReason = ChatCompletion['choices'][number]['finish_reason'];
type Usage = ChatReply['usage'];

interface Delta {
  readonly role?: 'assistant';
  readonly content?: string;
}

/**
 * OpenAI has fewer finish reasons. At its bound of turns an agent still answers, so that is `stop`; a cancelled reply
 * is not whole, which is `length`.
 */
const finishReasons: Readonly<Record<FinishReason, CompletionFinishReason>> = {
  stop: 'stop',
  length: 'length',
  max_turns: 'stop',
  content_filter: 'content_filter',
  cancelled: 'length',
};

function toCompletionUsage({ inputTokens, outputTokens }: Usage): CompletionUsage {
  return { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: inputTokens + outputTokens };
}

function buildHead({ turnId, contactId, model, createdAt }: ReplyFacts): Pick<ChatCompletion, 'id' | 'created' | 'model' | 'conversation'> {
  return { id: `chatcmpl-${turnId}`, created: createdAt, model, conversation: { id: contactId } };
}

/** The whole reply. The agent's tool calls were answered by the service: none is left for the client. */
export function buildChatCompletion(facts: ReplyFacts, { reply, usage, finishReason }: ChatReply): ChatCompletion {
  const message = { role: 'assistant', content: reply, refusal: null } as const;
  return {
    ...buildHead(facts),
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasons[finishReason] }],
    usage: toCompletionUsage(usage),
  };
}

/** The reply as chunks: the role first, then text, the reason for the end, the usage where it was asked for. */
export class ChatCompletionChunks implements ReplyEncoder {
  readonly #facts: ReplyFacts;
  readonly #withUsage: boolean;
  readonly #text = new AppendOnlyText();
  #open = true;

  constructor(facts: ReplyFacts, options: { readonly withUsage: boolean }) {
    this.#facts = facts;
    this.#withUsage = options.withUsage;
  }

  encode(event: TurnEvent): Frame[] {
    const text = this.#text.add(event);
    const frames = text === '' ? [] : [this.#chunk({ content: text })];
    switch (event.type) {
      case 'session': {
        return [this.#chunk({ role: 'assistant', content: '' })];
      }
      case 'done': {
        this.#open = false;
        const { finishReason, ...usage } = event.data;
        return [...frames, this.#chunk({}, finishReasons[finishReason]), ...this.#usage(usage), { data: '[DONE]' }];
      }
      case 'error': {
        this.#open = false;
        return [{ data: toOpenAiError(new AppError(event.data.code, event.data.message)) }];
      }
      case 'text_delta':
      case 'text_reset':
      case 'tool_call_start':
      case 'tool_call_progress':
      case 'tool_call_end':
      case 'tool_result': {
        return frames;
      }
    }
  }

  cutOff(): Frame[] {
    return this.#open ? [{ data: toOpenAiError(new AppError('shutting_down')) }] : [];
  }

  #chunk(delta: Delta, finishReason: CompletionFinishReason | null = null): Frame {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finishReason }];
    return this.#frame({ choices, ...(this.#withUsage && { usage: null }) });
  }

  #usage(usage: Usage): Frame[] {
    return this.#withUsage ? [this.#frame({ choices: [], usage: toCompletionUsage(usage) })] : [];
  }

  #frame(rest: { readonly choices: readonly object[]; readonly usage?: CompletionUsage | null }): Frame {
    return { data: { ...buildHead(this.#facts), object: 'chat.completion.chunk', ...rest } };
  }
}
