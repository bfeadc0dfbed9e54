// What pages have to be typed: fenced blocks of shell, and commands in code spans.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../bootstrap.mjs';

const listPages = (folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
    .toSorted();

/** The pages for people who use or operate it. */
export const userPages = [
  'README.md',
  ...listPages('docs'),
  ...listPages('docs/runbooks'),
  'examples/README.md',
  'infra/helm/concierge/README.md',
];

/** Those, and the pages for people who change it. */
export const allPages = [...userPages, 'AGENTS.md', 'CONTRIBUTING.md', 'infra/README.md', 'packages/cli/README.md'];

export const readPage = (page) => readFileSync(join(root, page), 'utf8');

const fence = /^(?<indent> *)```(?<info>[^\n`]*)\n(?<body>.*?)^ *```$/gmsu;

/** Fenced blocks: language, why it is not run (`sh not-run: git`), and the text without the block's indentation. */
export function readBlocks(text) {
  return [...text.matchAll(fence)].map(({ groups: { indent, info, body } }) => {
    const [, language, reason] = /^(\S*)(?: not-run: (\S+))?$/u.exec(info.trim()) ?? [undefined, info, 'unreadable'];
    return { language, reason, body: body.replaceAll(new RegExp(`^${indent}`, 'gmu'), '') };
  });
}

/** Code spans, each on one line, without the bars that tables escape. */
export function readSpans(text) {
  const withoutBlocks = text.replaceAll(fence, '');
  return [...withoutBlocks.matchAll(/`([^`]+)`/gu)].map(([, span]) => span.replaceAll(/\s+/gu, ' ').replaceAll('\\|', '|'));
}

/** Lines of shell in blocks, continued ones joined, without comments. */
export function readShellLines(text) {
  return readBlocks(text)
    .filter(({ language }) => language === 'sh' || language === '')
    .flatMap(({ body }) => body.replaceAll(/\\\n\s*/gu, ' ').split('\n'))
    .map((line) => line.split(' #', 1)[0].trim());
}

const stop = new Set(['|', '<', '>', '&&', ';', '·', '→']);

/** Words of a command up to where another begins; what stands in quotes is one word. */
function splitWords(command) {
  const words = command.match(/'[^']*'|"[^"]*"|\S+/gu) ?? [];
  const end = words.findIndex((word) => stop.has(word));
  return end === -1 ? words : words.slice(0, end);
}

/** The words behind `concierge` of every command of the operators' command line that a page has. */
export function readConciergeCommands(text) {
  const spans = readSpans(text).filter((span) => /^(?:npx )?concierge /u.test(span));
  return [...spans, ...readShellLines(text)].flatMap((line) => {
    const [, command] = /(?:^(?:[A-Z_]+=\S+ )*(?:npx )?concierge|\brun --rm (?:-T )?cli) (.+)$/u.exec(line) ?? [];
    return command === undefined ? [] : [splitWords(command)];
  });
}
