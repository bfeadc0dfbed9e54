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

export interface ScoredLists<Key> {
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
