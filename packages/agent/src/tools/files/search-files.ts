import { AppError, clip } from '@concierge/contract';
import type { FileEntry } from '@concierge/tenant';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import type { FileAccess } from '../tool-context.ts';
import { findFolder, matchHidden } from './file-tools.ts';
import { TextSearch } from './text-search.ts';

const FILES_MAX = 5000;
const MATCHES_MAX = 500;
const MATCHES_DEFAULT = 200;
const CONTEXT_MAX = 10;
const FILE_MAX_BYTES = 2 * 1024 * 1024;
const TOTAL_MAX_BYTES = 64 * 1024 * 1024;
/** Stays under the cap of a result, so that the note at the end is never what is cut. */
const OUTPUT_MAX_BYTES = 56 * 1024;
const LINE_MAX_CHARACTERS = 300;

export const searchFiles = defineTool({
  name: 'search_files',
  domain: 'files',
  cs: 'never',
  description: `Searches the text files of the workspace line by line, as ripgrep does, and answers with "path:line: text", sorted by path. Case is ignored unless the query has capital letters. Binary files, files over 2 MiB and names that begin with a dot are left out.
Use it to find where something stands; to read on, use read with the line as offset. For notes and past conversations use memory_search.`,
  schema: z.strictObject({
    query: z.string().min(1).max(1000).describe('Text to look for, within one line.'),
    path: z.string().optional().describe('Folder or file to search in. Default: the whole workspace.'),
    regex: z
      .boolean()
      .optional()
      .describe(
        'The query is a regular expression of ripgrep’s dialect (RE2: no look-around, no back-references; \\w, \\d and \\s know all scripts, \\b only ASCII). Default false.',
      ),
    whole_words: z.boolean().optional().describe('Only where the query stands between word boundaries. Default false.'),
    globs: z
      .array(z.string().min(1).max(200))
      .max(20)
      .optional()
      .describe('Which files: "*.md" by name in every folder, "templates/**" by path, "!*.csv" leaves out. The last that matches decides.'),
    context: z
      .int()
      .min(0)
      .max(CONTEXT_MAX)
      .optional()
      .describe('Lines to show before and after each match, as "path-line- text". Default 0.'),
    limit: z
      .int()
      .min(1)
      .max(MATCHES_MAX)
      .optional()
      .describe(`Matching lines at most. Default ${String(MATCHES_DEFAULT)}.`),
  }),
  sideEffect: 'none',
  run: async ({ query, path = '', regex = false, whole_words: wholeWords = false, ...options }, { files, signal }) => {
    if (/[\r\n]/u.test(query)) throw new ToolError('The search goes line by line: the query must not have line breaks.');
    const { limit = MATCHES_DEFAULT, context = 0, globs = [] } = options;
    await using texts = new TextSearch();
    await texts.lookFor({ text: query, isRegex: regex, wholeWords });
    const search = new FileSearch({ files, texts, signal, limit, context });
    const folder = findFolder(path);
    const { entries, isCut } = await filesUnder(files, folder, async (paths) => texts.filter(paths, globs, folder));
    await search.run(entries);
    return search.answer(isCut);
  },
});

async function filesUnder(
  files: FileAccess,
  path: string,
  choose: (paths: readonly string[]) => Promise<ReadonlySet<string>>,
): Promise<{ entries: FileEntry[]; isCut: boolean }> {
  const entry = path === '' ? undefined : await files.stat(path);
  if (entry?.kind === 'file') return { entries: [entry], isCut: false };
  const entries = await files.list(path, { recursive: true, limit: FILES_MAX, isHidden: matchHidden(path) });
  const shown = entries.filter((entry) => entry.kind === 'file');
  const chosen = await choose(shown.map((entry) => entry.path));
  return { entries: shown.filter((entry) => chosen.has(entry.path)), isCut: entries.length >= FILES_MAX };
}

interface SearchOptions {
  readonly files: FileAccess;
  readonly texts: TextSearch;
  readonly signal: AbortSignal;
  readonly limit: number;
  readonly context: number;
}

class FileSearch {
  readonly #options: SearchOptions;
  readonly #lines: string[] = [];
  #searched = 0;
  #tooLarge = 0;
  #matches = 0;
  #outputBytes = 0;
  /** Why the search ended before the last file. */
  #stopped: string | undefined;

  constructor(options: SearchOptions) {
    this.#options = options;
  }

  async run(entries: readonly FileEntry[]): Promise<void> {
    let bytes = 0;
    for (const { path, size } of entries) {
      this.#options.signal.throwIfAborted();
      if (size > FILE_MAX_BYTES) {
        this.#tooLarge += 1;
        continue;
      }
      bytes += size;
      if (bytes > TOTAL_MAX_BYTES) this.#stopped = 'the files are too large to search them all';
      if (this.#stopped !== undefined) return;
      await this.#search(path);
    }
  }

  answer(isListCut: boolean): string {
    const lines = this.#matches === 0 ? [`Nothing found in ${String(this.#searched)} files.`] : this.#lines;
    const notes = [
      ...(this.#stopped === undefined ? [] : [this.#stopped]),
      ...(isListCut ? [`only the first ${String(FILES_MAX)} files were looked at`] : []),
      ...(this.#tooLarge === 0 ? [] : [`${String(this.#tooLarge)} files over 2 MiB were left out`]),
    ];
    return [...lines, ...(notes.length === 0 ? [] : [`[${notes.join('; ')}; search in a folder, by globs or for something rarer]`])].join(
      '\n',
    );
  }

  async #search(path: string): Promise<void> {
    const { files, texts, limit, context } = this.#options;
    const text = await readText(files, path);
    if (text === undefined) return;
    this.#searched += 1;
    // One more than fits shows whether there are more.
    const found = await texts.findLines(text, limit - this.#matches + 1);
    const fitting = found.slice(0, limit - this.#matches);
    if (found.length > fitting.length) this.#stopped = `there are more than ${String(limit)} matches`;
    if (fitting.length === 0) return;
    this.#matches += fitting.length;
    if (context > 0 && this.#lines.length > 0) this.#lines.push('--');
    for (const line of writeHits({ path, text, found: fitting }, context)) this.#add(line);
  }

  #add(line: string): void {
    this.#outputBytes += Buffer.byteLength(line) + 1;
    if (this.#outputBytes <= OUTPUT_MAX_BYTES) this.#lines.push(line);
    else this.#stopped = 'there are more matches than fit';
  }
}

/** undefined for a file that is not text, and for one that was deleted since it was listed. */
async function readText(files: FileAccess, path: string): Promise<string | undefined> {
  try {
    return searchableText((await files.readBytes(path)).bytes);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/** Where lines were found in one text. */
interface LineHits {
  readonly path: string;
  readonly text: string;
  /** Indices from 0, rising. */
  readonly found: readonly number[];
}

/**
 * The lines that were found as ripgrep writes them: `path:12: text`, with `path-11- text` around them when context is
 * asked for, and `--` between what is not next to each other.
 */
function writeHits({ path, text, found }: LineHits, context: number): string[] {
  const lines = text.split('\n');
  // A final line break ends the last line.
  if (lines.at(-1) === '') lines.pop();
  const hits = new Set(found);
  const shown = [...new Set(found.flatMap((at) => range(Math.max(0, at - context), Math.min(lines.length - 1, at + context))))];
  return shown.flatMap((at, index) => {
    const sign = hits.has(at) ? ':' : '-';
    const line = `${path}${sign}${String(at + 1)}${sign} ${clip((lines[at] ?? '').trimEnd(), LINE_MAX_CHARACTERS)}`;
    const isApart = context > 0 && index > 0 && shown[index - 1] !== at - 1;
    return isApart ? ['--', line] : [line];
  });
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
}

const decoders = [
  { byteOrder: [0xff, 0xfe], decoder: new TextDecoder('utf-16le') },
  { byteOrder: [0xfe, 0xff], decoder: new TextDecoder('utf-16be') },
] as const;
const utf8 = new TextDecoder('utf-8');

/**
 * A file's text as ripgrep sees it: UTF-16 by its byte order mark, otherwise UTF-8, whatever is no text in it replaced;
 * with NUL in it, it is binary and undefined. Line ends are plain.
 */
function searchableText(bytes: Buffer): string | undefined {
  const marked = decoders.find(({ byteOrder }) => byteOrder.every((byte, index) => bytes[index] === byte));
  if (marked === undefined && bytes.includes(0)) return undefined;
  return (marked?.decoder ?? utf8).decode(bytes).replaceAll('\r\n', '\n');
}
