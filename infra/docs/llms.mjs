// llms.txt (https://llmstxt.org), made from docs/README.md and the tables of runbooks and decisions.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { root } from '../bootstrap.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');

/** Rows of a page's tables that begin with a link: title, path from the root, and what the other cells say. */
function readRows(page, text = read(page)) {
  return [...text.matchAll(/^\| \[([^\]]+)\]\(([^)]+)\) \| (.+) \|$/gmu)].map(([, title, target, rest]) => ({
    title,
    path: normalize(join(page, '..', target)),
    says: rest.split(' | '),
  }));
}

const toItem = ({ title, path, says }) => `- [${title}](${path}): ${says}`;

/** The text of llms.txt. */
export function buildLlms() {
  const [, ...sections] = read('docs/README.md').split(/^## /mu);
  const lists = sections.map((section) => {
    const items = readRows('docs/README.md', section).map((row) => toItem({ ...row, says: row.says[0] }));
    return `## ${section.split('\n', 1)[0]}\n\n${items.join('\n')}`;
  });
  const runbooks = readRows('docs/runbooks/README.md').map((row) => toItem({ ...row, says: row.says[1] }));
  const decisions = readRows('docs/decisions/README.md').map((row) => toItem({ ...row, says: row.says[0] }));
  return [
    '# Concierge',
    `> ${read('README.md').split('\n\n')[1].replaceAll('\n', ' ')}`,
    ...lists,
    `## Optional\n\n${[...runbooks, ...decisions].join('\n')}`,
  ]
    .join('\n\n')
    .concat('\n');
}

export function writeLlms() {
  writeFileSync(join(root, 'llms.txt'), buildLlms());
}
