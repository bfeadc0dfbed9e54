import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import type { SearchPattern, SearchRequest } from './search-thread.ts';
import { ToolError } from '../tool-error.ts';

/** Processor time of the thread for one answer, which a machine under load does not shorten. */
const MATCH_CPU_MS = 3000;
const LOOK_EVERY_MS = 250;
/** A minute or two, for a thread that hardly gets to run. By no clock: this process may stand still meanwhile. */
const LOOKS_MAX = 240;
const MICROSECONDS_PER_MS = 1000;
const THREAD_MEMORY_MB = 128;
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './search-thread.ts' : './search-thread.js', import.meta.url);
const Answer = z.union([z.object({ found: z.array(z.int()) }), z.object({ invalid: z.string() })]);
type Answer = z.infer<typeof Answer>;

export interface Query {
  readonly text: string;
  /** An expression of the dialect of ripgrep and RE2; otherwise plain text. */
  readonly isRegex: boolean;
  readonly wholeWords: boolean;
}

/** One search in a separate thread: which files, and which lines of them. */
export class TextSearch implements AsyncDisposable {
  readonly #thread = new Worker(threadFile, { resourceLimits: { maxOldGenerationSizeMb: THREAD_MEMORY_MB }, env: {} });
  readonly #started: Promise<unknown> = once(this.#thread, 'online');

  /**
   * Case counts only when the query has capital letters.
   * @throws ToolError when the expression is not valid, or takes too long to read
   */
  async lookFor(query: Query): Promise<void> {
    const answer = await this.#ask({ kind: 'pattern', pattern: buildPattern(query) }, EXPRESSION_TOO_SLOW);
    if (!('invalid' in answer)) return;
    throw new ToolError(
      `The query is not a valid regular expression (${answer.invalid}). The dialect is that of ripgrep and RE2: no look-around, no back-references. For plain text leave out regex.`,
    );
  }

  /**
   * The paths that globs let through; `folder`: where the search begins.
   * @throws ToolError when a glob is not valid, or takes too long
   */
  async filter(paths: readonly string[], globs: readonly string[], folder: string): Promise<ReadonlySet<string>> {
    if (globs.length === 0) return new Set(paths);
    const answer = await this.#ask({ kind: 'filter', paths, globs, folder }, 'The globs take too long to match. Use simpler ones.');
    if ('invalid' in answer) throw new ToolError(`A glob is not valid (${answer.invalid}).`);
    return new Set(answer.found.flatMap((at) => paths[at] ?? []));
  }

  /** The lines of a text that match; indices from 0, at most `limit`. @throws ToolError when it takes too long */
  async findLines(text: string, limit: number): Promise<readonly number[]> {
    const answer = await this.#ask({ kind: 'lines', text, limit }, EXPRESSION_TOO_SLOW);
    if ('invalid' in answer) throw new ToolError(answer.invalid);
    return answer.found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread.terminate();
  }

  async #ask(request: SearchRequest, tooSlow: string): Promise<Answer> {
    await this.#started;
    const over = new AbortController();
    const answered = once(this.#thread, 'message', { signal: over.signal });
    this.#thread.postMessage(request);
    void this.#endWhenSlow(over);
    try {
      const [answer] = await answered;
      return Answer.parse(answer);
    } catch (error) {
      throw new ToolError(tooSlow, { cause: error });
    } finally {
      over.abort();
    }
  }

  /** Aborts once the answer has taken too long. Never rejects; ends when it is over. */
  async #endWhenSlow(over: AbortController): Promise<void> {
    let beforeMs: number | undefined;
    for (let look = 0; look < LOOKS_MAX; look += 1) {
      await wait(LOOK_EVERY_MS, undefined, { signal: over.signal }).catch(() => undefined);
      if (over.signal.aborted) return;
      const usedMs = await this.#usedMs();
      beforeMs ??= usedMs;
      if (usedMs !== undefined && beforeMs !== undefined && usedMs - beforeMs > MATCH_CPU_MS) break;
    }
    over.abort();
  }

  /** The thread's processor time; undefined when it does not come to say so, as in the middle of a long text. */
  async #usedMs(): Promise<number | undefined> {
    // A Node before 24.6 has no such method: then the looks alone bound a search.
    const asked = Promise.try(async () => this.#thread.cpuUsage()).catch(() => undefined);
    const used = await Promise.race([asked, wait(LOOK_EVERY_MS, undefined, { ref: false })]);
    return used === undefined ? undefined : (used.user + used.system) / MICROSECONDS_PER_MS;
  }
}

const EXPRESSION_TOO_SLOW = 'The expression takes too long to match. Use a simpler one, or plain text.';

function buildPattern({ text, isRegex, wholeWords }: Query): SearchPattern {
  const ignoresCase = !hasCapital(text, isRegex);
  if (!isRegex) {
    const escaped = RegExp.escape(text);
    return { kind: 'text', source: wholeWords ? `(?<![${WORD}])${escaped}(?![${WORD}])` : escaped, ignoresCase };
  }
  const source = wholeWords ? `(?:^|[^${WORD}])(?:${toRe2(text)})(?:[^${WORD}]|$)` : toRe2(text);
  return { kind: 're2', source, ignoresCase };
}

/** What `\w` stands for, by Unicode, as the inside of a class. */
const WORD = String.raw`\p{L}\p{M}\p{Nd}\p{Pc}`;

const SPACE = String.raw`\s\v\x{85}\p{Z}`;
const outside: Readonly<Record<string, string>> = {
  w: `[${WORD}]`,
  W: `[^${WORD}]`,
  d: String.raw`\p{Nd}`,
  D: String.raw`\P{Nd}`,
  s: `[${SPACE}]`,
  S: `[^${SPACE}]`,
};
const inside: Readonly<Record<string, string>> = { w: WORD, d: String.raw`\p{Nd}`, s: SPACE };

/**
 * An expression of ripgrep's dialect for RE2, whose `\w`, `\d` and `\s` know ASCII only: "Straße" is one word here.
 * `\b` stays as it is; nothing in RE2 could take its place.
 */
function toRe2(source: string): string {
  let isInClass = false;
  return source.replaceAll(/\\[pP](?:\{[^}]*\}|.)|\\.|\[:\^?\w+:\]|[[\]]/gsu, (token: string) => {
    if (token === '[' || token === ']') isInClass = token === '[';
    if (token.length !== 2 || !token.startsWith('\\')) return token;
    return (isInClass ? inside : outside)[token.charAt(1)] ?? token;
  });
}

/** ripgrep's smart case: letters of escapes such as `\S` or `\pL` do not count. */
function hasCapital(text: string, isRegex: boolean): boolean {
  const literal = isRegex ? text.replaceAll(/\\[pP](?:\{[^}]*\}|.)|\\x\{?[\dA-Fa-f]+\}?|\\./gsu, '') : text;
  return /\p{Lu}/u.test(literal);
}
