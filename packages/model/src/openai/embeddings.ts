import type { CallMeter, Embedder, HowToEmbed, ModelUsage } from '@concierge/contract';
import { answerDeadline } from '@concierge/runtime/process';
import type OpenAI from 'openai';
import { z } from 'zod';
import type { EmbeddingsModel, Providers } from '../providers.ts';
import { asModelError, mayRepeat, pause, redact, waitBefore, defaultModelLimits, type ModelLimits } from './attempts.ts';
import { brokenStream, timedOut, toCallFailure, type CallFailure } from './call-failure.ts';
import { estimateTokens } from '../estimate-tokens.ts';
import { HttpTransport, openEndpoint, type Endpoint } from './transport.ts';
import type { FailedAttempt } from './models.ts';

export interface EmbeddingsOptions {
  readonly embeddings: NonNullable<Providers['embeddings']>;
  /** Patience; what is not given is `embeddingsLimits`. */
  readonly limits?: Partial<ModelLimits> | undefined;
  readonly onFailedAttempt?: ((failure: FailedAttempt) => void) | undefined;
}

/** A search waits for it: less patience than with a reply. */
export const embeddingsLimits: ModelLimits = {
  ...defaultModelLimits,
  attemptMs: 10_000,
  attempts: 2,
  backoffMs: 250,
  retryAfterMaxMs: 2000,
};

/** Texts of one request: 64 passages are some 30,000 tokens, far below what any provider takes at once. */
const BATCH_TEXTS = 64;
const BODY_MAX_CHARACTERS = 64 * 1024 * 1024;

/** Prices are per million tokens. */
const TOKENS_PER_PRICE = 1_000_000;
const NANOS_PER_DOLLAR = 1_000_000_000;

interface Embedded {
  readonly vectors: readonly Float32Array[];
  /** Estimated where the provider gives no figure. */
  readonly usage: ModelUsage;
}

const EmbeddingsAnswer = z.object({
  data: z.array(z.object({ index: z.int().nonnegative(), embedding: z.array(z.number()).min(1).max(65_536) })),
  usage: z.object({ prompt_tokens: z.number().nonnegative() }).nullish().catch(null),
});

/** The embeddings model of the providers file: vectors over any OpenAI-compatible `/embeddings`. */
export class Embeddings implements Embedder {
  readonly model: string;
  readonly #options: EmbeddingsOptions;
  readonly #limits: ModelLimits;
  readonly #transport = new HttpTransport();
  readonly #operators: Access;
  /** Dimensions of the first answer: a provider that changes them has changed its model. */
  #dimensions: number | undefined;

  constructor(options: EmbeddingsOptions) {
    this.model = options.embeddings.ref;
    this.#options = options;
    this.#limits = { ...embeddingsLimits, ...options.limits };
    this.#operators = openAccess(options.embeddings);
  }

  async embed(texts: readonly string[], signal: AbortSignal, { ownKey, meter }: HowToEmbed = {}): Promise<readonly Float32Array[]> {
    const { embeddings } = this.#options;
    const access = ownKey === undefined ? this.#operators : openAccess({ ...embeddings, apiKey: ownKey, ownKey: true });
    const vectors: Float32Array[] = [];
    for (let from = 0; from < texts.length; from += BATCH_TEXTS) {
      vectors.push(...(await this.#metered(texts.slice(from, from + BATCH_TEXTS), access, { signal, meter })));
    }
    return vectors;
  }

  /** Ends all connections. */
  close(): void {
    this.#transport.close();
  }

  async #metered(
    texts: readonly string[],
    access: Access,
    { signal, meter }: { readonly signal: AbortSignal; readonly meter: CallMeter | undefined },
  ): Promise<readonly Float32Array[]> {
    const { inputTokens, costUsd } = this.#toUsage(estimateTokens(texts.join('\n')), access);
    const expected = { tokens: inputTokens, nanos: Math.ceil((costUsd ?? 0) * NANOS_PER_DOLLAR) };
    const call = await meter?.reserve(access.ownKey ? undefined : expected);
    let usage: ModelUsage | undefined;
    try {
      const batch = await this.#embedBatch(texts, access, signal);
      ({ usage } = batch);
      return batch.vectors;
    } finally {
      await call?.settle(usage);
    }
  }

  async #embedBatch(texts: readonly string[], access: Access, signal: AbortSignal): Promise<Embedded> {
    for (let attempt = 1; ; attempt += 1) {
      signal.throwIfAborted();
      try {
        return await this.#request(texts, access, signal);
      } catch (error) {
        signal.throwIfAborted();
        const failure = toCallFailure(error);
        const waitMs = this.#report(attempt, failure, access);
        if (waitMs === null) throw asModelError(failure, access);
        await pause(waitMs, signal);
      }
    }
  }

  async #request(texts: readonly string[], access: Access, signal: AbortSignal): Promise<Embedded> {
    const late = answerDeadline(this.#limits.attemptMs);
    try {
      // Floats, as not every compatible server knows base64.
      const request: OpenAI.EmbeddingCreateParams = { model: this.#options.embeddings.name, input: [...texts], encoding_format: 'float' };
      const parts = [Buffer.from(JSON.stringify(request))];
      const body = await this.#transport.post(access.endpoint, parts, AbortSignal.any([signal, late]));
      const { vectors, inputTokens } = this.#readVectors(await body.readAll(BODY_MAX_CHARACTERS), texts.length);
      return { vectors, usage: this.#toUsage(inputTokens ?? estimateTokens(texts.join('\n')), access) };
    } catch (error) {
      throw late.aborted ? timedOut(`no vectors after ${String(this.#limits.attemptMs)} ms`) : error;
    }
  }

  #readVectors(body: string, count: number): { readonly vectors: Float32Array[]; readonly inputTokens: number | null } {
    const { data, usage } = parseAnswer(body);
    const inOrder = data.toSorted((one, other) => one.index - other.index);
    if (inOrder.length !== count || inOrder.some(({ index }, position) => index !== position)) {
      throw brokenStream(`${String(data.length)} vectors came for ${String(count)} texts`);
    }
    const dimensions = this.#dimensions ?? inOrder[0]?.embedding.length;
    if (inOrder.some(({ embedding }) => embedding.length !== dimensions)) throw brokenStream('vectors of different lengths came');
    this.#dimensions = dimensions;
    return { vectors: inOrder.map(({ embedding }) => Float32Array.from(embedding)), inputTokens: usage?.prompt_tokens ?? null };
  }

  #toUsage(inputTokens: number, { ownKey }: Access): ModelUsage {
    const input = this.#options.embeddings.price?.input;
    return {
      model: this.model,
      calls: 1,
      inputTokens,
      outputTokens: 0,
      cachedInputTokens: 0,
      costUsd: input === undefined ? null : (inputTokens * input) / TOKENS_PER_PRICE,
      ...(ownKey && { ownKey }),
    };
  }

  /** The wait before it is asked again; null when it is not. */
  #report(attempt: number, failure: CallFailure, { apiKey, ownKey }: Access): number | null {
    const limits = this.#limits;
    const waitMs = attempt < limits.attempts && mayRepeat(failure, limits) ? waitBefore(attempt, { failure, limits }) : null;
    const reason = redact(failure.message, apiKey);
    const { kind, status } = failure;
    const code = failure.code && redact(failure.code, apiKey);
    this.#options.onFailedAttempt?.({ model: this.model, attempt, kind, status, code, reason, waitMs, ownKey });
    return waitMs;
  }
}

/** With whose key it is asked. */
interface Access {
  readonly ref: string;
  readonly apiKey: string | null;
  readonly ownKey: boolean;
  readonly endpoint: Endpoint;
}

function openAccess({
  ref,
  baseUrl,
  apiKey,
  ownKey = false,
}: Pick<EmbeddingsModel, 'ref' | 'baseUrl' | 'apiKey'> & { readonly ownKey?: boolean }): Access {
  return { ref, apiKey, ownKey, endpoint: openEndpoint({ baseUrl, apiKey }, '/embeddings') };
}

function parseAnswer(body: string): z.infer<typeof EmbeddingsAnswer> {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch (error) {
    throw brokenStream('the vectors are not JSON', error);
  }
  const parsed = EmbeddingsAnswer.safeParse(json);
  if (!parsed.success) throw brokenStream('the answer has not the shape of vectors', parsed.error);
  return parsed.data;
}
