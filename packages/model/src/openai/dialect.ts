import type { CallExtra } from '@concierge/contract';
import type OpenAI from 'openai';
import { z } from 'zod';
import type { AssistantModelMessage } from '../model.ts';
import type { UsableModel } from '../providers.ts';

/** The field of thoughts: strict servers refuse the other one. */
export type ReasoningField = 'reasoning_content' | 'reasoning';

/** Where Google's signatures are: on each call, or, over OpenRouter, beside all calls of the message. */
export type SignatureField = 'extra_content' | 'reasoning_details';

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

/**
 * Google's signature of a call as OpenRouter gives it and wants it back: in `reasoning_details` of the message, by the
 * id of the call (https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks).
 */
const CallSignature = z.object({
  type: z.literal('reasoning.encrypted'),
  id: z.string().min(1),
  data: z.string().min(1),
  format: z.literal('google-gemini-v1'),
  index: z.number().nullish(),
});
type CallSignature = z.infer<typeof CallSignature>;

/** Under which a call keeps it. */
const OPENROUTER = 'openrouter';
/** What Google documents for calls of other models (https://ai.google.dev/gemini-api/docs/thought-signatures). */
const UNSIGNED = 'skip_thought_signature_validator';

/** The signatures of one reply, which come before their calls or behind them. */
export class CallSignatures {
  readonly #byCall = new Map<string, CallExtra>();

  /**
   * Of `reasoning_details`, nothing else is kept: text comes unsigned, and Google refuses it
   * (https://github.com/earendil-works/pi/issues/9100).
   */
  add(details: readonly unknown[]): void {
    for (const detail of details) {
      const { data: found } = CallSignature.safeParse(detail);
      if (found === undefined) continue;
      const { id, index, ...rest } = found;
      this.#byCall.set(id, { [OPENROUTER]: { ...rest, index: index ?? 0 } });
    }
  }

  find(callId: string): CallExtra | undefined {
    return this.#byCall.get(callId);
  }
}

/**
 * What stands on the call itself. Without the signature that came over OpenRouter: a provider of the same name may have
 * another address by now, whose server refuses a field that it does not know.
 */
function ofCall(extra: CallExtra | undefined): CallExtra | undefined {
  if (extra?.[OPENROUTER] === undefined) return extra;
  const { [OPENROUTER]: _signature, ...others } = extra;
  return Object.keys(others).length === 0 ? undefined : others;
}

interface Wanted {
  /** The model that is asked made these calls. */
  readonly isOwn: boolean;
  /** It refuses the first call without a signature. */
  readonly needsOne: boolean;
}

/** `reasoning_details` of a message with calls; undefined where there are none. */
function buildReasoningDetails(
  { toolCalls }: Pick<AssistantModelMessage, 'toolCalls'>,
  { isOwn, needsOne }: Wanted,
): readonly CallSignature[] | undefined {
  const own = isOwn ? toolCalls : [];
  const details = own.flatMap(({ id, extra }) => CallSignature.safeParse({ ...extra?.[OPENROUTER], id }).data ?? []);
  const [first] = toolCalls;
  // One for a message, and that for its first call: https://github.com/RooCodeInc/Roo-Code/pull/10640.
  if (first !== undefined && needsOne && !details.some(({ id }) => id === first.id))
    return [{ type: 'reasoning.encrypted', id: first.id, data: UNSIGNED, format: 'google-gemini-v1', index: 0 }];
  return details.length === 0 ? undefined : details;
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
