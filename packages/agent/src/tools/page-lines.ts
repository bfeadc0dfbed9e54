import { ToolError } from './tool-error.ts';
import { z } from 'zod';

const LINES_DEFAULT = 1000;
const LINES_MAX = 5000;
/** More lines than a file may have bytes. */
const LINE_NUMBER_MAX = 10_000_000;
/** Stays under the cap of a result with its line numbers, so that the note about the next page is never what is cut. */
const OUTPUT_MAX_BYTES = 56 * 1024;
const LINE_MAX_CHARACTERS = 2000;

/** Arguments of every tool that gives a text page by page. */
export const pageArguments = {
  offset: z.int().min(1).max(LINE_NUMBER_MAX).optional().describe('First line to read, from 1. Default 1.'),
  limit: z
    .int()
    .min(1)
    .max(LINES_MAX)
    .optional()
    .describe(`Lines to read at most. Default ${String(LINES_DEFAULT)}.`),
};

export interface Page {
  /** What the text is called in notes. */
  readonly name: string;
  readonly offset: number | undefined;
  readonly limit: number | undefined;
}

/**
 * One page of a text, each line with its number, and a note about where the next begins.
 * @throws ToolError for an offset behind the end
 */
export function buildPage(text: string, { name, offset = 1, limit = LINES_DEFAULT }: Page): string {
  const lines = splitLines(text);
  if (offset > lines.length) throw new ToolError(`${name} has ${String(lines.length)} lines; there is none at offset ${String(offset)}.`);
  const shown: string[] = [];
  let bytes = 0;
  for (const [index, line] of lines.slice(offset - 1, offset - 1 + limit).entries()) {
    const numbered = `${String(offset + index)}\t${shorten(line.replace(/\r$/u, ''))}`;
    bytes += Buffer.byteLength(numbered) + 1;
    if (bytes > OUTPUT_MAX_BYTES && shown.length > 0) break;
    shown.push(numbered);
  }
  const next = offset + shown.length;
  if (next > lines.length) return shown.join('\n');
  return `${shown.join('\n')}\n[lines ${String(offset)} to ${String(next - 1)} of ${String(lines.length)}; continue with offset ${String(next)}]`;
}

/** Does the text go on one page as it is, without numbers and notes? */
export function fitsOnPage(text: string): boolean {
  if (text.length > OUTPUT_MAX_BYTES || Buffer.byteLength(text) > OUTPUT_MAX_BYTES) return false;
  const lines = splitLines(text);
  return lines.length <= LINES_DEFAULT && lines.every((line) => line.length <= LINE_MAX_CHARACTERS);
}

/** For texts whose lines have no meaning: long ones are broken between words, so that none of them is cut. */
export function wrapLines(text: string): string {
  return text
    .split(/\r?\n|\f/u)
    .flatMap(wrapLine)
    .join('\n');
}

function wrapLine(line: string): string[] {
  const pieces: string[] = [];
  let rest = line;
  while (rest.length > LINE_MAX_CHARACTERS) {
    const space = rest.lastIndexOf(' ', LINE_MAX_CHARACTERS);
    const end = space > LINE_MAX_CHARACTERS / 2 ? space + 1 : LINE_MAX_CHARACTERS - 1;
    // Not between the halves of a pair.
    const at = /[\uD800-\uDBFF]/u.test(rest.charAt(end - 1)) ? end - 1 : end;
    pieces.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...pieces, rest];
}

/** A final line break ends the last line; it does not begin another. */
function splitLines(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function shorten(line: string): string {
  if (line.length <= LINE_MAX_CHARACTERS) return line;
  return `${line.slice(0, LINE_MAX_CHARACTERS).toWellFormed()}… [line cut: ${String(line.length)} characters]`;
}
