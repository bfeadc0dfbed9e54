import type { UsableModel } from '../providers.ts';
import type { ReasoningField } from './reply.ts';

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
}

const compatible: Dialect = {
  maxTokensField: 'max_tokens',
  streamOptions: true,
  promptCacheKey: false,
  nineCharacterIds: false,
  reasoningField: 'reasoning_content',
  needsReasoning: false,
  needsSignature: false,
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

/** By the host of the provider; of Google by the model, too: those before Gemini 3 ask for no signature. */
export function findDialect({ provider, name }: Pick<UsableModel, 'provider' | 'name'>): Dialect {
  const host = new URL(provider.baseUrl).hostname;
  if (host.endsWith('.openai.azure.com')) return { ...compatible, maxTokensField: 'max_completion_tokens' };
  const dialect = { ...compatible, ...byHost[host] };
  return { ...dialect, needsSignature: dialect.needsSignature && !/gemini-[12]\b/u.test(name) };
}
