/**
 * What a stretch of text is. Flat on purpose: cutting a list of runs leaves each half whole, where cutting a tree would
 * not.
 */
export interface Marks {
  readonly quote?: true;
  /** A block of code; its language, or the empty string. */
  readonly pre?: string;
  readonly link?: string;
  readonly bold?: true;
  readonly italic?: true;
  readonly strike?: true;
  readonly code?: true;
}

export interface Run {
  readonly text: string;
  readonly marks: Marks;
}

export type RichText = readonly Run[];

export function joinText(rich: RichText): string {
  return rich.map(({ text }) => text).join('');
}

/** The runs between two offsets, in UTF-16 units of the text. */
export function sliceRuns(rich: RichText, from: number, to: number): RichText {
  const cut: Run[] = [];
  let start = 0;
  for (const run of rich) {
    const text = run.text.slice(Math.max(0, from - start), Math.max(0, to - start));
    if (text !== '') cut.push({ text, marks: run.marks });
    start += run.text.length;
    if (start >= to) break;
  }
  return cut;
}

/** Neighbours for which `keyOf` returns the same. */
export function groupRuns<Key>(rich: RichText, keyOf: (run: Run) => Key): { readonly key: Key; readonly runs: Run[] }[] {
  const groups: { key: Key; runs: Run[] }[] = [];
  for (const run of rich) {
    const key = keyOf(run);
    const last = groups.at(-1);
    if (last !== undefined && last.key === key) last.runs.push(run);
    else groups.push({ key, runs: [run] });
  }
  return groups;
}
