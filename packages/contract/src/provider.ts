import { z } from 'zod';

const Price = z.strictObject({
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  cachedInput: z.number().nonnegative().optional(),
});

export const ModelFacts = z.strictObject({
  /** Tokens of prompt and answer together. */
  contextWindow: z.int().positive().default(128_000),
  maxOutputTokens: z.int().positive().default(8192),
  /** US dollars per million tokens. */
  price: Price.optional(),
  images: z.boolean().default(true),
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
  embeddings: z.strictObject({ model: ModelRef, apiKey: z.string().min(1).optional(), apiKeyEnv: z.string().min(1).optional() }).optional(),
});
export type ProvidersFile = z.infer<typeof ProvidersFile>;
