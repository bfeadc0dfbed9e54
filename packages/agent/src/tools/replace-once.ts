import { clip } from '@concierge/contract';
import { ToolError } from './tool-error.ts';

const CONTEXT_LINES = 2;
const DIFF_MAX_CHARACTERS = 8000;
const PLACES_MAX = 20;

export interface TableSync {
  readonly find: string;
  readonly replace: string;
  /** The file, for messages. */
  readonly path: string;
}

/**
 * Replaces the one place where `find` is. In a text whose lines all end with CRLF, line breaks of `find` and `replace`
 * may be plain: models write them so, and the file keeps its own. @throws ToolError that explains what to do when it is
 * nowhere or more than once
 */
export function replaceOnce(text: string, { path, ...asked }: TableSync): { text: string; diff: string } {
  const change = hasOnlyCrlf(text) ? { find: withCrlf(asked.find), replace: withCrlf(asked.replace) } : asked;
  if (change.find === change.replace) throw new ToolError('find and replace are the same: there is nothing to change.');
  const at = onlyPlace(text, change.find, path);
  const changed = text.slice(0, at) + change.replace + text.slice(at + change.find.length);
  const diff = showDiff(text, { at, ...change })
    .replaceAll(/\r(?=\n|$)/gu, '')
    .replaceAll('\r', '␍');
  return { text: changed, diff: clip(diff, DIFF_MAX_CHARACTERS) };
}

function hasOnlyCrlf(text: string): boolean {
  return text.includes('\r\n') && !/(?<!\r)\n/u.test(text);
}

function withCrlf(text: string): string {
  return text.replaceAll(/\r?\n/gu, '\r\n');
}

/** Where `find` is; overlapping positions count apart. */
function onlyPlace(text: string, find: string, path: string): number {
  const positions: number[] = [];
  for (let at = text.indexOf(find); at !== -1 && positions.length < PLACES_MAX; at = text.indexOf(find, at + 1)) positions.push(at);
  const [only] = positions;
  if (only !== undefined && positions.length === 1) return only;
  if (only === undefined)
    throw new ToolError(`The passage is not in ${path}.${nearMiss(text, find)} Read the file and copy the passage exactly.`);
  const lines = [...new Set(positions.map((at) => String(countLines(text, at))))];
  const count = positions.length < PLACES_MAX ? String(positions.length) : `at least ${String(PLACES_MAX)}`;
  throw new ToolError(`The passage is in ${path} ${count} times, at lines ${lines.join(', ')}. Add lines around it until it is unique.`);
}

/** The usual reasons: the line numbers of read, and the same words with other white space. */
function nearMiss(text: string, find: string): string {
  if (/^\d+\t/u.test(find)) return ' The numbers that read puts before lines are not part of the file.';
  const [first = ''] = find.trim().split('\n');
  const wanted = squeeze(first);
  if (wanted === '') return '';
  const line = text.split('\n').findIndex((candidate) => squeeze(candidate).includes(wanted));
  return line === -1 ? '' : ` Line ${String(line + 1)} is alike but for white space or what follows it.`;
}

function squeeze(line: string): string {
  return line.replaceAll(/\s+/gu, ' ').trim();
}

function countLines(text: string, at: number): number {
  return text.slice(0, at).split('\n').length;
}

/** The changed lines with a few around them, as diff shows them. */
function showDiff(text: string, change: { at: number; find: string; replace: string }): string {
  const from = change.at === 0 ? 0 : text.lastIndexOf('\n', change.at - 1) + 1;
  const lastAt = change.at + change.find.length;
  const lineEnd = text.indexOf('\n', change.find.endsWith('\n') ? lastAt - 1 : lastAt);
  const to = lineEnd === -1 ? text.length : lineEnd;
  const before = text.slice(from, to);
  const after = text.slice(from, change.at) + change.replace + text.slice(lastAt, Math.max(to, lastAt));
  const above = text.slice(0, from).split('\n').slice(0, -1).slice(-CONTEXT_LINES);
  const rest = text.slice(to + 1).replace(/\r?\n$/u, '');
  const below = rest === '' ? [] : rest.split('\n').slice(0, CONTEXT_LINES);
  const prefix = (sign: string, lines: readonly string[]): string[] => lines.map((line) => `${sign}${line}`);
  const head = `@@ line ${String(countLines(text, from))} @@`;
  return [
    head,
    ...prefix(' ', above),
    ...prefix('-', before.split('\n')),
    ...prefix('+', after.replace(/\r?\n$/u, '').split('\n')),
    ...prefix(' ', below),
  ].join('\n');
}
