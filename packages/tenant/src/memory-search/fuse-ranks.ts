/** Of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): how little the first few ranks differ. */
const SMOOTHING = 60;

/** Merges lists, best first each, by the ranks in them alone: their scores are of different kinds. Highest first; equals in no order. */
export function fuseRanks<Key>(...lists: readonly (readonly Key[])[]): Map<Key, number> {
  const scores = new Map<Key, number>();
  for (const list of lists) {
    for (const [rank, key] of list.entries()) scores.set(key, (scores.get(key) ?? 0) + 1 / (SMOOTHING + rank + 1));
  }
  return new Map([...scores].toSorted(([, one], [, other]) => other - one));
}
