// The table of docs/reading.md: which files to read, in order.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const MAX_FILES = 20;
const MAX_LINES = 3000;

export const countLines = (text) => text.split('\n').length - (text.endsWith('\n') ? 1 : 0);

/** The paths of the table's rows, whose numbers count up from 1. */
export function readSpine(root) {
  const page = readFileSync(join(root, 'docs', 'reading.md'), 'utf8');
  return [...page.matchAll(/^\| \d+ \| `([^`]+)` \|/gmu)].map(([, path]) => path);
}

/** What is wrong with the table by itself, a line each. */
export function spineProblems(root, spine = readSpine(root)) {
  const missing = spine.filter((path) => !existsSync(join(root, path)));
  const present = spine.filter((path) => !missing.includes(path));
  const lines = present.reduce((sum, path) => sum + countLines(readFileSync(join(root, path), 'utf8')), 0);
  return [
    ...missing.map((path) => `${path} does not exist`),
    ...(spine.length === 0 ? ['there is no table'] : []),
    ...(spine.length > MAX_FILES ? [`${spine.length} files are more than ${MAX_FILES}`] : []),
    ...(lines > MAX_LINES ? [`${lines} lines are more than ${MAX_LINES}`] : []),
  ];
}
