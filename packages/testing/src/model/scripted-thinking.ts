import { z } from 'zod';
import { raw, status, type Script } from './scripted-model-script.ts';

/** A provider that gives its thoughts along with tool calls and refuses a history without them. */
export type ThinkingProvider = 'gemini' | 'deepseek';

const Call = z.looseObject({
  id: z.string(),
  extra_content: z.object({ google: z.object({ thought_signature: z.string() }) }).optional(),
});
const Asked = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), tool_calls: z.array(Call).optional(), reasoning_content: z.string().nullish() })),
});
type AskedMessage = z.infer<typeof Asked>['messages'][number];

/** What Google documents for other models' calls (https://ai.google.dev/gemini-api/docs/thought-signatures). */
const UNSIGNED = 'skip_thought_signature_validator';

/**
 * What the thinking models of Google and DeepSeek do over chat completions. Google signs the first call of each reply
 * (`extra_content.google.thought_signature`), DeepSeek streams `reasoning_content` before it; both answer 400 to a
 * history in which an assistant message with calls has not exactly that.
 */
export class ScriptedThinking {
  readonly #provider: ThinkingProvider;
  /** What was given, by the id of the first call of its reply. */
  readonly #given = new Map<string, string>();

  constructor(provider: ThinkingProvider) {
    this.#provider = provider;
  }

  /** Undefined for a history that the provider takes. @throws ZodError for one of another shape */
  refuse(request: unknown): Script | undefined {
    const index = Asked.parse(request).messages.findIndex((message) => !this.#isComplete(message));
    if (index === -1) return undefined;
    const message =
      this.#provider === 'gemini'
        ? `Function call is missing a thought_signature in functionCall parts, position ${String(index)}.`
        : 'The `reasoning_content` in the thinking mode must be passed back to the API.';
    return [status(400, { body: { error: { message, type: 'invalid_request_error', param: null, code: 'invalid_request_error' } } })];
  }

  /** The reply with its thoughts. */
  think(script: Script): Script {
    const place = script.findIndex((action) => action.do === 'call');
    const action = script[place];
    const [first, ...others] = action?.do === 'call' ? action.calls : [];
    if (first === undefined) return script;
    const thought = `thought-${String(this.#given.size + 1)} of ${first.name}`;
    this.#given.set(first.id, thought);
    const signed = { ...first, extra: { google: { thought_signature: thought } } };
    return this.#provider === 'gemini'
      ? script.with(place, { do: 'call', calls: [signed, ...others] })
      : [...[thought.slice(0, 5), thought.slice(5)].map((piece) => raw(thinkingChunk(piece))), ...script];
  }

  #isComplete({ role, tool_calls: calls = [], reasoning_content: reasoning }: AskedMessage): boolean {
    const [first] = calls;
    if (role !== 'assistant' || first === undefined) return true;
    const given = this.#given.get(first.id);
    if (this.#provider === 'gemini') return first.extra_content?.google.thought_signature === (given ?? UNSIGNED);
    return given === undefined ? typeof reasoning === 'string' : reasoning === given;
  }
}

/** As DeepSeek writes it, empty content included. */
function thinkingChunk(piece: string): string {
  const delta = { role: 'assistant', content: null, reasoning_content: piece };
  return `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;
}
