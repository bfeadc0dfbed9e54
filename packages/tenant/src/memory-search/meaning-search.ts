import type { Embedder } from '@concierge/contract';
import { embeddedText, type PassageIndex, type PassageRank, type PassageScope } from '@concierge/index';
import type { Log } from '@concierge/runtime';

export interface MeaningSearchOptions {
  readonly embedder: Embedder;
  readonly passages: PassageIndex;
  readonly tenantId: string;
  readonly log: Log;
}

export type MeaningFound = PassageRank & { readonly similarity: number };

/** Nearest first; `failed` when the provider could not be asked. */
export type MeaningAnswer =
  | { readonly outcome: 'used'; readonly found: readonly MeaningFound[] }
  | { readonly outcome: 'failed'; readonly found: readonly [] };

/** Embedded before one search answers; the rest waits for the next one. */
const EMBEDDED_MAX = 256;
/** A provider that is slow or silent must not make the search so. */
const PATIENCE_MS = 15_000;
const FOUND_MAX = 60;
/** Below it nothing is alike, whatever the model. */
const SIMILARITY_MIN = 0.1;

/** Finds passages by vectors. It never fails a search: the answer reports what the provider cannot do. */
export class MeaningSearch {
  readonly #options: MeaningSearchOptions;

  constructor(options: MeaningSearchOptions) {
    this.#options = options;
  }

  /** Makes vectors for what of the scope has none, up to a bound; how many are left. @throws the signal's reason */
  async embedMissing(scope: PassageScope, signal: AbortSignal): Promise<number> {
    const { embedder, passages } = this.#options;
    const missing = await passages.unembedded(scope, { model: embedder.model, limit: EMBEDDED_MAX });
    if (missing.passages.length === 0) return missing.count;
    const vectors = await this.#embed(missing.passages.map(embeddedText), signal);
    if (vectors === undefined) return missing.count;
    await passages.putVectors(
      embedder.model,
      missing.passages.flatMap(({ hash }, place) => vectors.slice(place, place + 1).map((vector) => ({ hash, vector }))),
    );
    return missing.count - missing.passages.length;
  }

  /** What is near the question. @throws the signal's reason */
  async search(scope: PassageScope, { text, signal }: { readonly text: string; readonly signal: AbortSignal }): Promise<MeaningAnswer> {
    const { embedder, passages } = this.#options;
    const [vector] = (await this.#embed([text], signal)) ?? [];
    if (vector === undefined) return { outcome: 'failed', found: [] };
    const nearest = await passages.nearest(scope, { model: embedder.model, vector, limit: FOUND_MAX });
    return { outcome: 'used', found: nearest.filter(({ similarity }) => similarity >= SIMILARITY_MIN) };
  }

  /** The passages without a vector yet. */
  async withoutVector(scope: PassageScope, found: readonly { readonly rank: PassageRank }[]): Promise<ReadonlySet<number>> {
    const { embedder, passages } = this.#options;
    return new Set(await passages.withoutVector(scope, { model: embedder.model, ids: found.map(({ rank }) => rank.id) }));
  }

  /** Undefined when the provider failed or was not in time. */
  async #embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[] | undefined> {
    try {
      return await this.#options.embedder.embed(texts, AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]));
    } catch (error) {
      signal.throwIfAborted();
      this.#options.log.warn(
        { tenantId: this.#options.tenantId, err: error },
        'memory is searched by words alone: no embeddings could be had',
      );
      return undefined;
    }
  }
}
