import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { root } from '../bootstrap.mjs';
import { spineProblems } from '../reading/spine.mjs';
import { buildLlms } from './llms.mjs';

const skipped = new Set(['node_modules', 'dist', 'data', '.git', '.cache', 'coverage']);
const decisions = join(root, 'docs', 'decisions');

function filesBelow(folder, ending) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (skipped.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(path, ending);
    return ending.test(entry.name) ? [path] : [];
  });
}

const read = (path) => readFileSync(path, 'utf8');

/** The anchor that GitHub gives a heading. */
function toAnchor(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

const anchorsIn = (text) => [...text.matchAll(/^#+ (.+)$/gmu)].map(([, heading]) => toAnchor(heading));

/** Links to files of the repository that lead nowhere, as `file: target`. */
function brokenLinks(file) {
  const text = read(file)
    .replaceAll(/^```.*?^```/gmsu, '')
    .replaceAll(/`[^`\n]*`/gu, '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/gu)].map(([, target]) => target).filter((target) => !/^(?:[a-z]+:|\/)/u.test(target));
  return targets.filter((target) => {
    const [path, anchor] = target.split('#', 2);
    const goal = path === '' ? file : join(dirname(file), decodeURI(path));
    if (!existsSync(goal)) return true;
    return anchor !== undefined && !anchorsIn(read(goal)).includes(anchor);
  });
}

const pages = filesBelow(root, /\.md$/u);
const code = ['infra', 'packages', 'services', 'docs'].flatMap((folder) => filesBelow(join(root, folder), /\.(?:md|ts|tsx|mjs|lua)$/u));

describe('the documents', () => {
  it('have no link that leads nowhere', () => {
    const broken = pages.flatMap((file) => brokenLinks(file).map((target) => `${relative(root, file)}: ${target}`));
    expect(broken).toEqual([]);
  });

  it('are named by paths that exist', () => {
    const missing = code.flatMap((file) =>
      [...read(file).matchAll(/\bdocs\/[\w/-]+\.md\b/gu)]
        .filter(([path]) => !existsSync(join(root, path)))
        .map(([path]) => `${relative(root, file)}: ${path}`),
    );
    expect(missing).toEqual([]);
  });
});

describe('docs/README.md', () => {
  it('has every page of docs, and the index of every folder below', () => {
    const linked = [...read(join(root, 'docs', 'README.md')).matchAll(/\]\(([^)]+)\)/gu)].map(([, target]) => target);
    const own = filesBelow(join(root, 'docs'), /\.md$/u).map((path) => relative(join(root, 'docs'), path));
    const indexed = own.filter((path) => !/^(?:README\.md$|(?:decisions|runbooks)\/(?!README))/u.test(path));
    expect(indexed.filter((path) => !linked.includes(path))).toEqual([]);
  });
});

describe('llms.txt', () => {
  const text = read(join(root, 'llms.txt'));
  const linked = [...text.matchAll(/^- \[[^\]]+\]\(([^)]+)\): \S/gmu)].map(([, target]) => target);

  it('is what npm run docs makes', () => {
    expect(text).toBe(buildLlms());
  });

  it('has the form of llmstxt.org: a title, a summary, lists of links with notes', () => {
    const [title, summary, ...rest] = text.trimEnd().split('\n\n');
    expect(title).toMatch(/^# \S/u);
    expect(summary).toMatch(/^> .+$/u);
    const items = rest.filter((_, at) => at % 2 === 1).flatMap((list) => list.split('\n'));
    expect(rest.filter((_, at) => at % 2 === 0).every((heading) => heading.startsWith('## '))).toBe(true);
    expect(items).toHaveLength(linked.length);
  });

  it('has every page of docs, once, and no link that leads nowhere', () => {
    const own = filesBelow(join(root, 'docs'), /\.md$/u).map((path) => relative(root, path));
    expect(own.filter((path) => path !== 'docs/README.md' && !linked.includes(path))).toEqual([]);
    expect(linked.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    expect(new Set(linked).size).toBe(linked.length);
  });
});

describe('the decisions', () => {
  const names = readdirSync(decisions).filter((name) => /^\d/u.test(name));
  const readHead = (name) =>
    /^# (?<number>\d{4})\. (?<title>.+)\n\nDate: (?<date>\d{4}-\d\d-\d\d)(?:, revised \d{4}-\d\d-\d\d)?\. Status: (?<status>accepted|superseded by \d{4})\./u.exec(
      read(join(decisions, name)),
    )?.groups;

  it('have a number of their own, a title, a date and a status', () => {
    expect(names.filter((name) => readHead(name)?.number !== name.slice(0, 4))).toEqual([]);
    expect(new Set(names.map((name) => name.slice(0, 4))).size).toBe(names.length);
  });

  it('all stand in the index, as they are', () => {
    const rows = read(join(decisions, 'README.md'))
      .split('\n')
      .filter((line) => line.startsWith('| ['));
    expect(rows).toEqual(
      names.map((name) => {
        const { number, title, date, status } = readHead(name);
        return `| [${number}](${name}) | ${title} | ${date} | ${status} |`;
      }),
    );
  });
});

describe('the reading list', () => {
  it('names files that exist, few enough to be read', () => {
    expect(spineProblems(root)).toEqual([]);
  });
});
