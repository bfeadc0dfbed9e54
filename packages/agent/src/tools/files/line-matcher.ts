import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
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

/** Plain text. Case counts only when the query has capital letters. */
export function literalMatcher(query: string): LineMatcher {
  const isExact = query !== query.toLowerCase();
  // Most files do not match at all: those are not split into lines.
  const fold = (text: string): string => (isExact ? text : text.toLowerCase());
  return {
    match: (text, limit) => Promise.resolve(fold(text).includes(query) ? linesWith(text, limit, (line) => fold(line).includes(query)) : []),
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

/** A regular expression, matched in a thread that is ended when it takes too long. @throws ToolError when it is not valid */
export function regexMatcher(source: string): LineMatcher {
  const flags = source === source.toLowerCase() ? 'iu' : 'u';
  try {
    new RegExp(source, flags);
  } catch (error) {
    throw new ToolError(`The query is not a valid regular expression: ${error instanceof Error ? error.message : source}`);
  }
  return new RegexMatcher(source, flags);
}

class RegexMatcher implements LineMatcher {
  readonly #source: string;
  readonly #flags: string;
  readonly #thread: Worker;

  constructor(source: string, flags: string) {
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
