import { z } from 'zod';
import type { ModelUsage } from '../turns/turn.ts';

const Price = z.strictObject({
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  cachedInput: z.number().nonnegative().optional(),
});

const timeoutMs = z
  .int()
  .positive()
  .max(30 * 60_000);

/** How long a model may be silent before another is asked (`ModelLimits` of packages/model has what is not given). */
const ModelTimeouts = z.strictObject({
  /** From the request to the headers of its answer. */
  headersMs: timeoutMs.optional(),
  /** From there to the first word or call, and for a call that is being written: models that reason think long. */
  firstTokenMs: timeoutMs.optional(),
  /** In the middle of text. */
  silenceMs: timeoutMs.optional(),
});

export const ModelFacts = z.strictObject({
  /** Tokens of prompt and answer together. */
  contextWindow: z.int().positive().default(128_000),
  maxOutputTokens: z.int().positive().default(8192),
  /** US dollars per million tokens. */
  price: Price.optional(),
  images: z.boolean().default(true),
  timeouts: ModelTimeouts.optional(),
});
export type ModelFacts = z.infer<typeof ModelFacts>;

const ModelRef = z.string().regex(/^[^/\s]+\/\S+$/u, 'must read provider/model');

/** DATA_DIR/providers.json (contract §1). Any OpenAI-compatible base URL is a provider. */
export const ProvidersFile = z.strictObject({
  default: ModelRef,
  fallbacks: z.array(ModelRef).default([]),
  providers: z.record(
    z.string().regex(/^[a-z0-9-]+$/u),
    z.strictObject({
      baseUrl: z.url(),
      apiKey: z.string().min(1).optional(),
      apiKeyEnv: z.string().min(1).optional(),
      models: z.record(z.string(), ModelFacts).default({}),
    }),
  ),
  embeddings: z
    .strictObject({
      model: ModelRef,
      apiKey: z.string().min(1).optional(),
      apiKeyEnv: z.string().min(1).optional(),
      /** US dollars per million tokens. */
      price: z.strictObject({ input: z.number().nonnegative() }).optional(),
    })
    .optional(),
});
export type ProvidersFile = z.infer<typeof ProvidersFile>;

/** Turns texts into vectors. Without one, memory is searched by words alone. */
export interface Embedder {
  /** `provider/model` of what makes the vectors: those of two models cannot be compared. */
  readonly model: string;
  /**
   * One vector for each text, in order, all of one length. Rejects when the provider fails, or with the reason of the
   * signal.
   */
  embed(texts: readonly string[], signal: AbortSignal, how?: HowToEmbed): Promise<readonly Float32Array[]>;
}

export interface HowToEmbed {
  /** A tenant's, in place of the operator's. */
  readonly ownKey?: string | undefined;
  readonly meter?: CallMeter | undefined;
}

/** What a call of a model is expected to take, as far as the operator pays: tokens, and billionths of a dollar. */
export interface ExpectedCall {
  readonly tokens: number;
  readonly nanos: number;
}

/** Reserves each call of a model before it is made, and hears what it took. */
export interface CallMeter {
  /**
   * `expected`: undefined where the operator does not pay; `settle`: undefined when the call failed.
   * @throws AppError budget_exceeded
   */
  reserve(expected: ExpectedCall | undefined): Promise<{ settle(usage: ModelUsage | undefined): Promise<void> }>;
}
