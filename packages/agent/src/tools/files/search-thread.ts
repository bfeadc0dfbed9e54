import { parentPort } from 'node:worker_threads';

/*
 * Runs in a separate thread: what is looked for comes from a model, and the process has other turns to run. Expressions
 * and globs are RE2's, which takes time in proportion to the text; still some take a hundred times more than others,
 * and plain text can be chosen so that looking for it is slow. The asking side ends the thread when an answer takes too
 * long. RE2 is loaded when it is needed: a thread that looks for plain text starts in half the time.
 */

export type SearchPattern = {
  /** `text`: an expression in which nothing repeats, for JavaScript; `re2`: one of a model's. */
  readonly kind: 'text' | 're2';
  readonly source: string;
  readonly ignoresCase: boolean;
};

export type SearchRequest =
  /** Which paths the globs let through. Answer: their indices. */
  | { readonly kind: 'filter'; readonly globs: readonly string[]; readonly folder: string; readonly paths: readonly string[] }
  /** What the texts that follow are searched for. Answer: an empty list. */
  | { readonly kind: 'pattern'; readonly pattern: SearchPattern }
  /** Answer: indices of the lines that match, at most `limit`. */
  | { readonly kind: 'lines'; readonly text: string; readonly limit: number };

/** Indices from 0, rising; or why the pattern or a glob is none. */
export type SearchAnswer = { readonly found: readonly number[] } | { readonly invalid: string };

type Matches = (text: string) => boolean;

let matches: Matches = () => false;
/** Where a text as a whole can be asked: most texts do not match at all, and those are not split into lines. */
let mayMatch: Matches = () => true;

parentPort?.on('message', (request: SearchRequest) => {
  void answer(request).then((found) => parentPort?.postMessage(found));
});

async function answer(request: SearchRequest): Promise<SearchAnswer> {
  try {
    switch (request.kind) {
      case 'filter': {
        const { globFilter } = await import('./file-globs.ts');
        return { found: findIndices(request.paths, globFilter(request.globs, request.folder)) };
      }
      case 'pattern':
        await usePattern(request.pattern);
        return { found: [] };
      case 'lines':
        return { found: mayMatch(request.text) ? findIndices(request.text.split('\n'), matches, request.limit) : [] };
    }
  } catch (error) {
    return { invalid: error instanceof Error ? error.message : String(error) };
  }
}

async function usePattern({ kind, source, ignoresCase }: SearchPattern): Promise<void> {
  if (kind === 're2') {
    const { RE2JS } = await import('re2js');
    const pattern = RE2JS.compile(source, ignoresCase ? RE2JS.CASE_INSENSITIVE : 0);
    matches = (line) => pattern.test(line);
  } else {
    // bounded-expression: escaped text in which nothing repeats, in a thread that is ended when it takes too long
    const pattern = new RegExp(source, ignoresCase ? 'iv' : 'v');
    matches = (line) => pattern.test(line);
    mayMatch = matches;
  }
}

function findIndices(texts: readonly string[], isWanted: Matches, limit = Infinity): number[] {
  const found: number[] = [];
  for (const [index, text] of texts.entries()) {
    if (found.length >= limit) break;
    if (isWanted(text)) found.push(index);
  }
  return found;
}
