import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { root } from '../bootstrap.mjs';
import { spineProblems } from '../reading/spine.mjs';

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
