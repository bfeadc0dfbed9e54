import type OpenAI from 'openai';
import type { AssistantModelMessage } from '../model.ts';
import type { UsableModel } from '../providers.ts';
import type { ReasoningField } from './reply.ts';

/** What a provider does with the thoughts that its model had before a tool call. */
interface Thoughts {
  readonly field: ReasoningField;
  /** An assistant message with calls is refused without the field, whichever model wrote it (DeepSeek, Kimi). */
  readonly required: boolean;
  /** The first call of an assistant message is refused without a signature, whichever model wrote it (Gemini 3). */
  readonly signed: boolean;
}

const optional: Thoughts = { field: 'reasoning_content', required: false, signed: false };
const thinkingHosts = new Set(['api.deepseek.com', 'api.moonshot.ai', 'api.moonshot.cn']);

/** By the host of the provider; of Google by the model, too: those before Gemini 3 ask for no signature. */
export function findThoughts({ provider, name }: UsableModel): Thoughts {
  const host = new URL(provider.baseUrl).hostname;
  if (host === 'openrouter.ai') return { ...optional, field: 'reasoning' };
  if (host === 'generativelanguage.googleapis.com') return { ...optional, signed: !/gemini-[12]\b/u.test(name) };
  return thinkingHosts.has(host) ? { ...optional, required: true } : optional;
}

/** What Google documents for calls of other models (https://ai.google.dev/gemini-api/docs/thought-signatures). */
const UNSIGNED = { google: { thought_signature: 'skip_thought_signature_validator' } };
/** An empty text is taken for a missing one by some servers. */
const UNKNOWN = ' ';

interface Sent extends OpenAI.ChatCompletionAssistantMessageParam {
  readonly tool_calls: OpenAI.ChatCompletionMessageFunctionToolCall[];
}

/**
 * The message with what the model needs of its own thoughts. Those of another model are left out: signatures are valid
 * for one model, and servers exist that refuse fields which they do not give.
 */
export function sendThoughts(sent: Sent, message: AssistantModelMessage, model: UsableModel): Sent {
  const { field, required, signed } = findThoughts(model);
  const isOwn = message.model === model.ref;
  const reasoning = (isOwn ? message.reasoning?.toWellFormed() : undefined) ?? (required ? UNKNOWN : undefined);
  const calls = sent.tool_calls.map((call, index) => {
    const extra = (isOwn ? message.toolCalls[index]?.extra : undefined) ?? (signed && index === 0 ? UNSIGNED : undefined);
    return extra === undefined ? call : { ...call, extra_content: extra };
  });
  return { ...sent, tool_calls: calls, ...(reasoning !== undefined && { [field]: reasoning }) };
}
