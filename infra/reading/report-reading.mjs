// What `npm run reading` prints.
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { root } from '../bootstrap.mjs';
import { linesRun } from './count-lines.mjs';
import { measureTurn } from './measure-turn.mjs';
import { countLines, readSpine, spineProblems } from './spine.mjs';

/** Longer than the longest period of what runs on a timer in a gateway or a worker. */
const IDLE_S = '15';

/** Sources of ours. The demo model stands in for a provider. */
const own = /^(?:packages|services)\/(?!model\/src\/demo\/).*\.ts$/u;

const print = (text) => process.stdout.write(`${text}\n`);

function toPath({ url }) {
  if (!url.startsWith('file:')) return null;
  const path = relative(root, fileURLToPath(url));
  return own.test(path) && !path.includes('node_modules') ? path : null;
}

/** Path → numbers of the lines that ran, in any of the services. */
function filesRun(measured) {
  const files = new Map();
  for (const { idle, turn } of measured) {
    const idleByUrl = new Map(idle.map((script) => [script.url, script.functions]));
    for (const script of turn) {
      const path = toPath(script);
      if (path === null) continue;
      const lines = linesRun(readFileSync(join(root, path), 'utf8'), script.functions, idleByUrl.get(script.url) ?? []);
      if (lines.length > 0) files.set(path, new Set([...(files.get(path) ?? []), ...lines]));
    }
  }
  return files;
}

function printFiles(files, spine) {
  for (const path of [...files.keys()].toSorted((one, other) => one.localeCompare(other))) {
    const total = countLines(readFileSync(join(root, path), 'utf8'));
    print(`${spine.includes(path) ? '*' : ' '} ${String(files.get(path).size).padStart(4)} of ${String(total).padStart(4)}  ${path}`);
  }
  print('* stands in docs/reading.md');
}

/** Measures, prints, and resolves with the exit code: 1 when docs/reading.md names what did not run, or too much. */
export async function reportReading(args) {
  const { values } = parseArgs({ args, options: { files: { type: 'boolean' }, idle: { type: 'string', default: IDLE_S } } });
  const files = filesRun(await measureTurn({ idleMs: Number(values.idle) * 1000 }));
  const spine = readSpine(root);
  if (values.files) printFiles(files, spine);
  const executed = [...files.values()].reduce((sum, lines) => sum + lines.size, 0);
  const total = [...files.keys()].reduce((sum, path) => sum + countLines(readFileSync(join(root, path), 'utf8')), 0);
  print(`One warm web turn with a tool call runs ${executed} lines in ${files.size} files of ${total} lines, beyond what runs idle.`);
  const problems = [
    ...spineProblems(root, spine),
    ...spine
      .filter((path) => path.endsWith('.ts') && existsSync(join(root, path)) && !files.has(path))
      .map((path) => `${path} did not run`),
  ];
  for (const problem of problems) print(`docs/reading.md: ${problem}`);
  if (problems.length === 0) print(`All ${spine.length} files of docs/reading.md are part of it (Lua scripts are not measured).`);
  return problems.length === 0 ? 0 : 1;
}
