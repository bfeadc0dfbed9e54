import type OpenAI from 'openai';
import type { AssistantModelMessage } from '../model.ts';
import type { Dialect } from './dialect.ts';

/** What Google documents for calls of other models (https://ai.google.dev/gemini-api/docs/thought-signatures). */
const UNSIGNED = { google: { thought_signature: 'skip_thought_signature_validator' } };
/** An empty text is taken for a missing one by some servers. */
const UNKNOWN = ' ';

interface Sent extends OpenAI.ChatCompletionAssistantMessageParam {
  readonly tool_calls: OpenAI.ChatCompletionMessageFunctionToolCall[];
}

/**
 * The message with what the model of this reference needs of its own thoughts. Those of another model are left out:
 * signatures are valid for one model, and servers exist that refuse fields which they do not give.
 */
export function sendThoughts(sent: Sent, message: AssistantModelMessage, to: { ref: string; dialect: Dialect }): Sent {
  const { reasoningField, needsReasoning, needsSignature } = to.dialect;
  const isOwn = message.model === to.ref;
  const reasoning = (isOwn ? message.reasoning?.toWellFormed() : undefined) ?? (needsReasoning ? UNKNOWN : undefined);
  const calls = sent.tool_calls.map((call, index) => {
    const extra = (isOwn ? message.toolCalls[index]?.extra : undefined) ?? (needsSignature && index === 0 ? UNSIGNED : undefined);
    return extra === undefined ? call : { ...call, extra_content: extra };
  });
  return { ...sent, tool_calls: calls, ...(reasoning !== undefined && { [reasoningField]: reasoning }) };
}
