import { z } from 'zod';
import { clip } from '../cut-text.ts';
import { defineTool, ToolError } from '../tool.ts';

const CONTEXT_LINES = 2;
const DIFF_MAX_CHARACTERS = 8000;

export const edit = defineTool({
  name: 'edit',
  description:
    'Replaces one passage of a text file. `find` must be in the file exactly once, character by character, line breaks and indentation included and without the line numbers that read shows; take enough of its surroundings to make it unique. Answers with the changed lines.',
  schema: z.strictObject({
    path: z.string().min(1).describe('Relative path of an existing file.'),
    find: z.string().min(1).describe('The passage as it is now.'),
    replace: z.string().describe('What stands there afterwards; empty to delete.'),
  }),
  sideEffect: 'writes',
  run: async ({ path, find, replace }, { files }) => {
    if (find === replace) throw new ToolError('find and replace are the same: there is nothing to change.');
    let diff = '';
    await files.updateText(path, (text) => {
      const at = onlyPlace(text, find, path);
      diff = diffOf(text, { at, find, replace });
      return text.slice(0, at) + replace + text.slice(at + find.length);
    });
    return `Changed ${path}:\n${clip(diff, DIFF_MAX_CHARACTERS)}`;
  },
});

/** Where `find` is; says what to do when it is nowhere or more than once. */
function onlyPlace(text: string, find: string, path: string): number {
  const places: number[] = [];
  for (let at = text.indexOf(find); at !== -1 && places.length < 20; at = text.indexOf(find, at + find.length)) places.push(at);
  const [only] = places;
  if (only !== undefined && places.length === 1) return only;
  if (only === undefined)
    throw new ToolError(`The passage is not in ${path}.${nearMiss(text, find)} Read the file and copy the passage exactly.`);
  const lines = places.map((at) => String(lineOf(text, at)));
  throw new ToolError(
    `The passage is in ${path} ${String(places.length)} times, at lines ${lines.join(', ')}. Add lines around it until it is unique.`,
  );
}

/** The usual reason: the same words with other white space. */
function nearMiss(text: string, find: string): string {
  const [first = ''] = find.trim().split('\n');
  const wanted = squeeze(first);
  if (wanted === '') return '';
  const line = text.split('\n').findIndex((candidate) => squeeze(candidate).includes(wanted));
  return line === -1 ? '' : ` Line ${String(line + 1)} is alike but for white space or what follows it.`;
}

function squeeze(line: string): string {
  return line.replaceAll(/\s+/gu, ' ').trim();
}

function lineOf(text: string, at: number): number {
  return text.slice(0, at).split('\n').length;
}

/** The changed lines with a few around them, as diff shows them. */
function diffOf(text: string, change: { at: number; find: string; replace: string }): string {
  const from = change.at === 0 ? 0 : text.lastIndexOf('\n', change.at - 1) + 1;
  const lastAt = change.at + change.find.length;
  const lineEnd = text.indexOf('\n', change.find.endsWith('\n') ? lastAt - 1 : lastAt);
  const to = lineEnd === -1 ? text.length : lineEnd;
  const before = text.slice(from, to);
  const after = text.slice(from, change.at) + change.replace + text.slice(lastAt, Math.max(to, lastAt));
  const above = text.slice(0, from).split('\n').slice(0, -1).slice(-CONTEXT_LINES);
  const below = text
    .slice(to + 1)
    .split('\n')
    .slice(0, CONTEXT_LINES);
  const mark = (sign: string, lines: readonly string[]): string[] => lines.map((line) => `${sign}${line}`);
  const head = `@@ line ${String(lineOf(text, from))} @@`;
  return [
    head,
    ...mark(' ', above),
    ...mark('-', before.split('\n')),
    ...mark('+', after.replace(/\n$/u, '').split('\n')),
    ...mark(' ', below),
  ].join('\n');
}
