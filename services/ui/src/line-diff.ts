export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
}

/** Larger texts are shown as a whole taken away and a whole put in its place: comparing them all takes too long. */
const COMPARED_MAX = 2_000_000;

/** What makes `after` of `before`, line by line, by their longest common subsequence. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, now] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const middle = diffMiddle(old.slice(start, old.length - end), now.slice(start, now.length - end));
  const same = (lines: readonly string[]): DiffLine[] => lines.map((text) => ({ kind: 'same', text }));
  return [...same(old.slice(0, start)), ...middle, ...same(end === 0 ? [] : old.slice(-end))];
}

function diffMiddle(old: readonly string[], now: readonly string[]): DiffLine[] {
  if (old.length * now.length > COMPARED_MAX) return [...mark(old, 'removed'), ...mark(now, 'added')];
  const lengths = commonLengths(old, now);
  const lines: DiffLine[] = [];
  let [left, right] = [0, 0];
  while (left < old.length && right < now.length) {
    const text = old[left] ?? '';
    if (text === now[right]) {
      lines.push({ kind: 'same', text });
      left += 1;
      right += 1;
    } else if ((lengths[left + 1]?.[right] ?? 0) >= (lengths[left]?.[right + 1] ?? 0)) {
      lines.push({ kind: 'removed', text });
      left += 1;
    } else {
      lines.push({ kind: 'added', text: now[right] ?? '' });
      right += 1;
    }
  }
  return [...lines, ...mark(old.slice(left), 'removed'), ...mark(now.slice(right), 'added')];
}

/** Of each pair of places: how many lines what follows has in common. */
function commonLengths(old: readonly string[], now: readonly string[]): readonly Uint32Array[] {
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  for (let left = old.length - 1; left >= 0; left -= 1) {
    const row = lengths[left] ?? new Uint32Array();
    const below = lengths[left + 1] ?? new Uint32Array();
    for (let right = now.length - 1; right >= 0; right -= 1) {
      row[right] = old[left] === now[right] ? (below[right + 1] ?? 0) + 1 : Math.max(below[right] ?? 0, row[right + 1] ?? 0);
    }
  }
  return lengths;
}

function mark(lines: readonly string[], kind: DiffLine['kind']): DiffLine[] {
  return lines.map((text) => ({ kind, text }));
}
