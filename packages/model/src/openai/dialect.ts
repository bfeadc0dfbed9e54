import type OpenAI from 'openai';
import type { AssistantModelMessage } from '../model.ts';
import type { UsableModel } from '../providers.ts';
import { buildReasoningDetails, ofCall, UNSIGNED } from './call-signatures.ts';
import type { ReasoningField, SignatureField } from './reply.ts';

/** Where the compatible servers part ways. */
export interface Dialect {
  /**
   * OpenAI's reasoning models refuse `max_tokens`; nearly everyone else knows only that, and Mistral answers 422 to the
   * other.
   */
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
  /** Mistral answers 422 to `stream_options` and sends usage without being asked. */
  readonly streamOptions: boolean;
  /** OpenAI routes by it to the machine that has the prompt cached; strict servers refuse unknown fields. */
  readonly promptCacheKey: boolean;
  /** Mistral refuses a conversation with other ids, such as those of a fallback of another provider. */
  readonly nineCharacterIds: boolean;
  /** In which a model tells what it thinks. */
  readonly reasoningField: ReasoningField;
  /** An assistant message with calls is refused without its thoughts, whichever model wrote it (DeepSeek, Kimi). */
  readonly needsReasoning: boolean;
  /** The first call of an assistant message is refused without a signature, whichever model wrote it (Gemini 3). */
  readonly needsSignature: boolean;
  readonly signatureField: SignatureField;
}

const compatible: Dialect = {
  maxTokensField: 'max_tokens',
  streamOptions: true,
  promptCacheKey: false,
  nineCharacterIds: false,
  reasoningField: 'reasoning_content',
  needsReasoning: false,
  needsSignature: false,
  signatureField: 'extra_content',
};

const byHost: Readonly<Record<string, Partial<Dialect>>> = {
  'api.openai.com': { maxTokensField: 'max_completion_tokens', promptCacheKey: true },
  'api.mistral.ai': { streamOptions: false, nineCharacterIds: true },
  'api.deepseek.com': { needsReasoning: true },
  'api.moonshot.ai': { needsReasoning: true },
  'api.moonshot.cn': { needsReasoning: true },
  'generativelanguage.googleapis.com': { needsSignature: true },
  'openrouter.ai': { reasoningField: 'reasoning' },
};

/** Beside the table above, of Gemini models at hosts that serve others, too. */
function findGeminiDialect(host: string): Partial<Dialect> {
  if (host === 'openrouter.ai') return { signatureField: 'reasoning_details', needsSignature: true };
  return isVertex(host) ? { needsSignature: true } : {};
}

/** Of all locations, one, or a multi-region. */
function isVertex(host: string): boolean {
  if (host === 'aiplatform.googleapis.com' || host.endsWith('-aiplatform.googleapis.com')) return true;
  return host.startsWith('aiplatform.') && host.endsWith('.rep.googleapis.com');
}

/** By the host of the provider; of Gemini by the model, too: those before Gemini 3 ask for no signature. */
export function findDialect({ provider, name }: Pick<UsableModel, 'provider' | 'name'>): Dialect {
  const host = new URL(provider.baseUrl).hostname;
  if (host.endsWith('.openai.azure.com')) return { ...compatible, maxTokensField: 'max_completion_tokens' };
  const dialect = { ...compatible, ...byHost[host], ...(/\bgemini-/u.test(name) && findGeminiDialect(host)) };
  return { ...dialect, needsSignature: dialect.needsSignature && !/gemini-[12]\b/u.test(name) };
}

const unsignedExtra = { google: { thought_signature: UNSIGNED } };
/** An empty text is taken for a missing one by some servers. */
const UNKNOWN = ' ';

interface Sent extends OpenAI.ChatCompletionAssistantMessageParam {
  readonly tool_calls: OpenAI.ChatCompletionMessageFunctionToolCall[];
  readonly reasoning_details?: readonly unknown[];
}

/**
 * The message with what the model of this reference needs of its own thoughts. Those of another model are left out:
 * signatures are valid for one model, and servers exist that refuse fields which they do not give.
 */
export function sendThoughts(sent: Sent, message: AssistantModelMessage, to: { ref: string; dialect: Dialect }): Sent {
  const { reasoningField, needsReasoning, needsSignature, signatureField } = to.dialect;
  const isOwn = message.model === to.ref;
  if (signatureField === 'reasoning_details') {
    const details = buildReasoningDetails(message, { isOwn, needsOne: needsSignature });
    // Without thoughts as text: those are unsigned, and refused beside a signature.
    if (details !== undefined) return { ...sent, reasoning_details: details };
  }
  const reasoning = (isOwn ? message.reasoning?.toWellFormed() : undefined) ?? (needsReasoning ? UNKNOWN : undefined);
  const calls = sent.tool_calls.map((call, index) => {
    const own = isOwn ? ofCall(message.toolCalls[index]?.extra) : undefined;
    const extra = own ?? (needsSignature && index === 0 ? unsignedExtra : undefined);
    return extra === undefined ? call : { ...call, extra_content: extra };
  });
  return { ...sent, tool_calls: calls, ...(reasoning !== undefined && { [reasoningField]: reasoning }) };
}
