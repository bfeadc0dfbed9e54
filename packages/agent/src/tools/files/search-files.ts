import { AppError } from '@concierge/contract';
import type { FileEntry } from '@concierge/tenant';
import { z } from 'zod';
import { clip } from '../cut-text.ts';
import { literalMatcher, regexMatcher, type LineMatcher } from './line-matcher.ts';
import { defineTool } from '../tool.ts';
import type { FileView } from '../tool-context.ts';

const FILES_MAX = 5000;
const MATCHES_MAX = 200;
const FILE_MAX_BYTES = 2 * 1024 * 1024;
const TOTAL_MAX_BYTES = 64 * 1024 * 1024;
const LINE_MAX_CHARACTERS = 240;

interface Found {
  readonly lines: string[];
  /** Why the search ended before the last file. */
  stopped: string | undefined;
}

export const searchFiles = defineTool({
  name: 'search_files',
  description:
    'Searches the text files of the workspace line by line and answers with path:line: text. Case is ignored unless the query has capital letters.',
  schema: z.strictObject({
    query: z.string().min(1).max(1000).describe('Text to look for.'),
    path: z.string().optional().describe('Folder or file to search in. Default: the whole workspace.'),
    regex: z.boolean().optional().describe('The query is a JavaScript regular expression. Default false.'),
  }),
  sideEffect: 'none',
  run: async ({ query, path = '', regex = false }, { files, signal }) => {
    await using matcher = regex ? regexMatcher(query) : literalMatcher(query);
    const { entries, isCut } = await filesUnder(files, path.replace(/^\.?\/*$/u, '').replace(/\/+$/u, ''));
    const found: Found = { lines: [], stopped: isCut ? `only the first ${String(FILES_MAX)} files were searched` : undefined };
    await searchAll({ files, matcher, signal }, entries, found);
    if (found.lines.length === 0) found.lines.push(`Nothing found in ${String(entries.length)} files.`);
    if (found.stopped !== undefined) found.lines.push(`[${found.stopped}; search in a folder or for something rarer]`);
    return found.lines.join('\n');
  },
});

async function filesUnder(files: FileView, path: string): Promise<{ entries: FileEntry[]; isCut: boolean }> {
  const place = path === '' ? undefined : await files.stat(path);
  if (place?.kind === 'file') return { entries: [place], isCut: false };
  const entries = await files.list(path, { recursive: true, limit: FILES_MAX });
  return { entries: entries.filter(({ kind }) => kind === 'file'), isCut: entries.length >= FILES_MAX };
}

async function searchAll(
  { files, matcher, signal }: { files: FileView; matcher: LineMatcher; signal: AbortSignal },
  entries: readonly FileEntry[],
  found: Found,
): Promise<void> {
  let bytes = 0;
  for (const { path, size } of entries) {
    signal.throwIfAborted();
    if (size > FILE_MAX_BYTES) continue;
    bytes += size;
    const limit = limitReached(bytes, found.lines.length);
    if (limit !== undefined) {
      found.stopped = limit;
      return;
    }
    const text = await textOf(files, path);
    if (text === undefined) continue;
    const numbers = await matcher.match(text, MATCHES_MAX - found.lines.length);
    const lines = numbers.length === 0 ? [] : text.split('\n');
    for (const index of numbers)
      found.lines.push(`${path}:${String(index + 1)}: ${clip((lines[index] ?? '').trim(), LINE_MAX_CHARACTERS)}`);
  }
}

function limitReached(bytes: number, matches: number): string | undefined {
  if (bytes > TOTAL_MAX_BYTES) return 'the files are too large to search them all';
  return matches >= MATCHES_MAX ? `there are more than ${String(MATCHES_MAX)} matches` : undefined;
}

/** undefined for what is no text, and for what went away since it was listed. */
async function textOf(files: FileView, path: string): Promise<string | undefined> {
  try {
    return (await files.readText(path)).text;
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
