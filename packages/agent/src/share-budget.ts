/**
 * The most that each of several parts may take so that all together take at most `room`: parts that need less leave
 * what they do not use to the others. Infinity when all of them fit.
 */
export function fairShare(sizes: readonly number[], room: number): number {
  let left = room;
  const ascending = sizes.toSorted((one, other) => one - other);
  for (const [index, size] of ascending.entries()) {
    const share = left / (ascending.length - index);
    if (size > share) return Math.max(0, Math.floor(share));
    left -= size;
  }
  return Number.POSITIVE_INFINITY;
}
