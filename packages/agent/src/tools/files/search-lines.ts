import { clip } from '../cut-text.ts';

const LINE_MAX_CHARACTERS = 300;

/** Where lines were found in one text. */
export interface LineHits {
  readonly path: string;
  readonly text: string;
  /** Indices from 0, rising. */
  readonly found: readonly number[];
}

/**
 * The lines that were found as ripgrep writes them: `path:12: text`, with `path-11- text` around them when context is asked for, and `--`
 * between what is not next to each other.
 */
export function writeHits({ path, text, found }: LineHits, context: number): string[] {
  const lines = text.split('\n');
  // A final line break ends the last line.
  if (lines.at(-1) === '') lines.pop();
  const hits = new Set(found);
  const shown = [...new Set(found.flatMap((at) => range(Math.max(0, at - context), Math.min(lines.length - 1, at + context))))];
  return shown.flatMap((at, index) => {
    const mark = hits.has(at) ? ':' : '-';
    const line = `${path}${mark}${String(at + 1)}${mark} ${clip((lines[at] ?? '').trimEnd(), LINE_MAX_CHARACTERS)}`;
    const isApart = context > 0 && index > 0 && shown[index - 1] !== at - 1;
    return isApart ? ['--', line] : [line];
  });
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
}
