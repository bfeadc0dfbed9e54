import {
  AppError,
  type ChatReply,
  type FinishReason,
  type OutputMessage,
  type OutputText,
  type ResponseObject,
  type TurnEvent,
} from '@concierge/contract';
import { AppendOnlyText, type Frame, type ReplyEncoder, type ReplyFacts } from './reply-encoder.ts';
import { toOpenAiError } from './openai-error.ts';

/** What a response repeats of its request. */
export interface ResponseFacts extends ReplyFacts {
  readonly instructions: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly previousResponseId: string | null;
  readonly user: string | null;
}

type Outcome = Pick<ResponseObject, 'status' | 'output' | 'error' | 'incomplete_details' | 'usage'>;
type Usage = ChatReply['usage'];

const incompleteReasons: Readonly<Record<FinishReason, NonNullable<ResponseObject['incomplete_details']>['reason'] | null>> = {
  stop: null,
  max_turns: null,
  length: 'max_output_tokens',
  content_filter: 'content_filter',
  cancelled: 'cancelled',
};

const nothingYet: Outcome = { status: 'in_progress', output: [], error: null, incomplete_details: null, usage: null };

function responseObject(facts: ResponseFacts, outcome: Outcome): ResponseObject {
  return {
    id: `resp_${facts.turnId}`,
    object: 'response',
    created_at: facts.createdAt,
    ...outcome,
    background: false,
    instructions: facts.instructions,
    max_output_tokens: null,
    metadata: { ...facts.metadata },
    model: facts.model,
    conversation: { id: facts.contactId },
    parallel_tool_calls: true,
    previous_response_id: facts.previousResponseId,
    store: true,
    temperature: null,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    truncation: 'disabled',
    user: facts.user,
  };
}

function outputText(text: string): OutputText {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function outputMessage({ turnId }: ReplyFacts, status: OutputMessage['status'], content: OutputText[]): OutputMessage {
  return { id: `msg_${turnId}`, type: 'message', status, role: 'assistant', content };
}

function toResponseUsage({ inputTokens, outputTokens }: Usage): NonNullable<ResponseObject['usage']> {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
}

function ended(facts: ReplyFacts, { reply, usage, finishReason }: Pick<ChatReply, 'reply' | 'usage' | 'finishReason'>): Outcome {
  const reason = incompleteReasons[finishReason];
  const status = reason === null ? 'completed' : 'incomplete';
  const output = [outputMessage(facts, status, [outputText(reply)])];
  return { status, output, error: null, incomplete_details: reason === null ? null : { reason }, usage: toResponseUsage(usage) };
}

/** The whole reply. The agent's tool calls were answered by the service and are not among its items. */
export function buildResponse(facts: ResponseFacts, reply: ChatReply): ResponseObject {
  return responseObject(facts, ended(facts, reply));
}

/**
 * The reply as events, each with its `sequence_number`, one message of one part: created, in_progress →
 * output_item.added, content_part.added → output_text.delta… → output_text.done, content_part.done, output_item.done →
 * completed or incomplete; failed at any time after the first two.
 */
export class ResponseEvents implements ReplyEncoder {
  readonly #facts: ResponseFacts;
  readonly #text = new AppendOnlyText();
  readonly #position: { readonly item_id: string; readonly output_index: 0; readonly content_index: 0 };
  #said = '';
  #state: 'silent' | 'speaking' | 'ended' = 'silent';
  #next = 0;

  constructor(facts: ResponseFacts) {
    this.#facts = facts;
    this.#position = { item_id: outputMessage(facts, 'in_progress', []).id, output_index: 0, content_index: 0 };
  }

  encode(event: TurnEvent): Frame[] {
    const frames = this.#say(this.#text.add(event));
    switch (event.type) {
      case 'session': {
        const response = responseObject(this.#facts, nothingYet);
        return [this.#frame('response.created', { response }), this.#frame('response.in_progress', { response })];
      }
      case 'done': {
        return [...frames, ...this.#end(event.data)];
      }
      case 'error': {
        return this.#fail(new AppError(event.data.code, event.data.message));
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
    return this.#state === 'ended' ? [] : this.#fail(new AppError('shutting_down'));
  }

  #say(delta: string): Frame[] {
    if (delta === '') return [];
    const opening = this.#begin();
    this.#said += delta;
    return [...opening, this.#frame('response.output_text.delta', { ...this.#position, delta, logprobs: [] })];
  }

  #begin(): Frame[] {
    if (this.#state !== 'silent') return [];
    this.#state = 'speaking';
    const item = outputMessage(this.#facts, 'in_progress', []);
    return [
      this.#frame('response.output_item.added', { output_index: 0, item }),
      this.#frame('response.content_part.added', { ...this.#position, part: outputText('') }),
    ];
  }

  #end({ finishReason, ...usage }: Usage & { readonly finishReason: FinishReason }): Frame[] {
    const opening = this.#begin();
    this.#state = 'ended';
    const text = this.#said;
    const outcome = ended(this.#facts, { reply: text, usage, finishReason });
    return [
      ...opening,
      this.#frame('response.output_text.done', { ...this.#position, text, logprobs: [] }),
      this.#frame('response.content_part.done', { ...this.#position, part: outputText(text) }),
      this.#frame('response.output_item.done', { output_index: 0, item: outcome.output[0] }),
      this.#frame(`response.${outcome.status}`, { response: responseObject(this.#facts, outcome) }),
    ];
  }

  /** Text that was sent already stands in the failed response, as what it is. */
  #fail(error: AppError): Frame[] {
    const output = this.#state === 'silent' ? [] : [outputMessage(this.#facts, 'incomplete', [outputText(this.#said)])];
    this.#state = 'ended';
    const { code, message } = toOpenAiError(error).error;
    const response = responseObject(this.#facts, { ...nothingYet, status: 'failed', output, error: { code, message } });
    return [this.#frame('response.failed', { response })];
  }

  #frame(type: string, rest: object): Frame {
    const frame = { event: type, data: { type, sequence_number: this.#next, ...rest } };
    this.#next += 1;
    return frame;
  }
}
