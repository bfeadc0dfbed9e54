/**
 * Does a JSON value consist of more values than this, itself included? Looks at no more of them, and no nesting is too
 * deep for it.
 */
export function hasMoreValues(value: unknown, most: number): boolean {
  const waiting: unknown[] = [value];
  for (let seen = 1; waiting.length > 0; seen += 1) {
    if (seen > most || waiting.length > most) return true;
    const next = waiting.pop();
    if (typeof next !== 'object' || next === null) continue;
    const inside = Array.isArray(next) ? next : Object.values(next);
    if (seen + waiting.length + inside.length > most) return true;
    waiting.push(...inside);
  }
  return false;
}
