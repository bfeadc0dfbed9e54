import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { RE2JS } from 're2js';
import { z } from 'zod';
import { hasCapital, toRe2, WORD } from './regex-dialect.ts';
import type { MatchRequest } from './match-lines.ts';
import { ToolError } from '../tool.ts';

const MATCH_TIMEOUT_MS = 3000;
const THREAD_MEMORY_MB = 128;
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './match-lines.ts' : './match-lines.js', import.meta.url);
const Lines = z.array(z.int());

/** Finds the lines of a text that match; indices from 0, at most `limit`. */
export interface LineMatcher extends AsyncDisposable {
  match(text: string, limit: number): Promise<readonly number[]>;
}

export interface Query {
  readonly text: string;
  /** An expression of the dialect of ripgrep and RE2; otherwise plain text. */
  readonly isRegex: boolean;
  readonly wholeWords: boolean;
}

/** Case counts only when the query has capital letters. @throws ToolError when the expression is not valid */
export function lineMatcher(query: Query): LineMatcher {
  return query.isRegex ? regexMatcher(query) : literalMatcher(query);
}

function literalMatcher({ text: query, wholeWords }: Query): LineMatcher {
  const escaped = RegExp.escape(query);
  const source = wholeWords ? `(?<![${WORD}])${escaped}(?![${WORD}])` : escaped;
  // Nothing in it repeats: it takes no longer than looking for the text.
  const pattern = new RegExp(source, hasCapital(query, false) ? 'v' : 'iv');
  return {
    // Most files do not match at all: those are not split into lines.
    match: (text, limit) => Promise.resolve(pattern.test(text) ? linesWith(text, limit, (line) => pattern.test(line)) : []),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function linesWith(text: string, limit: number, matches: (line: string) => boolean): number[] {
  const found: number[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (found.length >= limit) break;
    if (matches(line)) found.push(index);
  }
  return found;
}

function regexMatcher({ text, wholeWords }: Query): LineMatcher {
  const source = wholeWords ? `(?:^|[^${WORD}])(?:${toRe2(text)})(?:[^${WORD}]|$)` : toRe2(text);
  const flags = hasCapital(text, true) ? 0 : RE2JS.CASE_INSENSITIVE;
  try {
    RE2JS.compile(source, flags);
  } catch (error) {
    const reason = error instanceof Error ? error.message : text;
    throw new ToolError(
      `The query is not a valid regular expression (${reason}). The dialect is that of ripgrep and RE2: no look-around, no back-references. For plain text leave out regex.`,
    );
  }
  return new RegexMatcher(source, flags);
}

class RegexMatcher implements LineMatcher {
  readonly #source: string;
  readonly #flags: number;
  readonly #thread: Worker;

  constructor(source: string, flags: number) {
    this.#source = source;
    this.#flags = flags;
    this.#thread = new Worker(threadFile, { resourceLimits: { maxOldGenerationSizeMb: THREAD_MEMORY_MB }, env: {} });
  }

  async match(text: string, limit: number): Promise<readonly number[]> {
    const request: MatchRequest = { source: this.#source, flags: this.#flags, text, limit };
    this.#thread.postMessage(request);
    try {
      const [lines] = await once(this.#thread, 'message', { signal: AbortSignal.timeout(MATCH_TIMEOUT_MS) });
      return Lines.parse(lines);
    } catch (error) {
      throw new ToolError('The expression takes too long to match. Use a simpler one, or plain text.', { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread.terminate();
  }
}
