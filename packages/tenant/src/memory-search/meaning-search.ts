import type { CallMeter, Embedder } from '@concierge/contract';
import { embeddedText, type PassageIndex, type PassageRank, type PassageScope } from '@concierge/index';
import { answerDeadline, type Log } from '@concierge/runtime';

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

/** How long a search may take, and what reserves and counts its calls. */
interface MeaningAsk {
  readonly signal: AbortSignal;
  readonly meter?: CallMeter | undefined;
}

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
  async embedMissing(scope: PassageScope, ask: MeaningAsk): Promise<number> {
    const { embedder, passages } = this.#options;
    const missing = await passages.unembedded(scope, { model: embedder.model, limit: EMBEDDED_MAX });
    if (missing.passages.length === 0) return missing.count;
    const vectors = await this.#embed(missing.passages.map(embeddedText), ask);
    if (vectors === undefined) return missing.count;
    await passages.putVectors(
      embedder.model,
      missing.passages.flatMap(({ hash }, position) => vectors.slice(position, position + 1).map((vector) => ({ hash, vector }))),
    );
    return missing.count - missing.passages.length;
  }

  /** What is near the question. @throws the signal's reason */
  async search(scope: PassageScope, ask: MeaningAsk & { readonly text: string }): Promise<MeaningAnswer> {
    const { embedder, passages } = this.#options;
    const [vector] = (await this.#embed([ask.text], ask)) ?? [];
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
  async #embed(texts: readonly string[], { signal, meter }: MeaningAsk): Promise<readonly Float32Array[] | undefined> {
    try {
      return await this.#options.embedder.embed(texts, AbortSignal.any([signal, answerDeadline(PATIENCE_MS)]), { meter });
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

/**
 * What the nearest passage by meaning gains: as much as one gains by words that contains two fifths of the question. So
 * a passage that contains more than that stays before all that is merely near, and where the words match little,
 * meaning decides.
 */
const NEAREST_GAIN = 0.4;
/**
 * How the gain fades with the rank: the eighth gains half. Similarities are not compared, as each model has its own
 * scale.
 */
const FADING_RANKS = 7;
/**
 * The best by words stays among the first so many, if it contains at least this share of the question: a model that
 * does not know the language puts chance before it.
 */
const BEST_BY_WORDS_WITHIN = 5;
const BEST_BY_WORDS_MIN = 0.2;

interface ScoredLists<Key> {
  /** Best first; scores as of `scoreTexts`. */
  readonly byWords: readonly { readonly key: Key; readonly score: number }[];
  /** Nearest first. */
  readonly byMeaning: readonly Key[];
  /** The keys of `byWords` without a vector yet. */
  readonly unembedded: ReadonlySet<Key>;
}

/**
 * Merges what words and meaning found: a weighted sum in which the words count by how much of the question they cover,
 * and meaning by rank (docs/decisions/0018-memory-search.md). What has no vector yet gains what its rank by words
 * would, as far as its words are sure. Highest first; equals in no order.
 */
export function fuseScores<Key>({ byWords, byMeaning, unembedded }: ScoredLists<Key>): Map<Key, number> {
  const scores = new Map<Key, number>();
  for (const [rank, { key, score }] of byWords.entries()) {
    const assumed = unembedded.has(key) ? computeGain(rank) * Math.min(1, score) : 0;
    scores.set(key, score + assumed);
  }
  for (const [rank, key] of byMeaning.entries()) scores.set(key, (scores.get(key) ?? 0) + computeGain(rank));
  const best = byWords[0];
  if (best !== undefined && best.score >= BEST_BY_WORDS_MIN) {
    const last = [...scores.values()].toSorted((one, other) => other - one)[BEST_BY_WORDS_WITHIN - 1] ?? 0;
    if ((scores.get(best.key) ?? 0) < last) scores.set(best.key, last + Number.EPSILON);
  }
  return new Map([...scores].toSorted(([, one], [, other]) => other - one));
}

function computeGain(rank: number): number {
  return NEAREST_GAIN / (1 + rank / FADING_RANKS);
}
