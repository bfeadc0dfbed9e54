// `node infra/check/layout.mjs [folder]`: fails when a folder has too many files, or a small file has one importer, to
// which it belongs.
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseSync } from '@swc/core';

const FILES_MAX = 20;
const LINES_MIN = 40;

/** Code as it is written: what is compiled, generated or installed is none of it. */
const sources = '{packages,services}/*/**/*.{ts,tsx,mjs,lua}';
const leftOut = new Set(['node_modules', 'dist', 'test']);
/** Started, loaded or read by name, and small where there is little to start. */
const entries = /(?:^|-)(?:main|index|config|wire|thread|build)\.(?:ts|tsx|mjs)$/u;

const isCode = (path) => /(?<!\.d)\.tsx?$/u.test(path);
const isTest = (path) => path.includes('.test.') || /\/fixtures\//u.test(path);
/** Only tests import these. */
const isForTests = (path) => /^packages\/(?:testing|acceptance)\//u.test(path) || isTest(path);
const isLeftOut = (path) => path.split('/').some((part) => leftOut.has(part));

/** Folders with more files than may be, apart from tests, fixtures and an index. */
function findFullFolders(paths) {
  const counts = new Map();
  for (const path of paths) {
    if (isTest(path) || basename(path) === 'index.ts') continue;
    counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > FILES_MAX).map(([folder, count]) => ({ folder, count }));
}

/**
 * Files of a few lines that one other file imports, or none. `files`: text by path; `exported`: path by what is
 * imported.
 */
function findSmallFiles(files, exported) {
  const importers = importersIn(files, exported);
  const isEntry = (path) => entries.test(basename(path)) || [...exported.values()].includes(path);
  const small = [];
  for (const [path, text] of files) {
    const lines = text.trimEnd().split('\n').length;
    if (lines >= LINES_MIN || !isCode(path) || isForTests(path) || isEntry(path)) continue;
    const by = [...(importers.get(path) ?? [])].filter((importer) => !isForTests(importer));
    if (by.length < 2) small.push({ path, lines, by: by[0] });
  }
  return small;
}

/** Returns the importers of each file; through an index only those that import one of its names. */
function importersIn(files, exported) {
  const imports = new Map([...files].filter(([path]) => isCode(path)).map(([path, text]) => [path, listImports(path, text)]));
  const importers = new Map();
  const add = (target, importer) => importers.set(target, (importers.get(target) ?? new Set()).add(importer));
  const follow = ({ from, names }, at, importer) => {
    const target = from.startsWith('.') ? normalize(join(dirname(at), from)) : exported.get(from);
    const inner = imports.get(target);
    if (inner === undefined) return;
    if (basename(target) !== 'index.ts') return add(target, importer);
    for (const passedOn of inner.filter(({ isExport }) => isExport)) {
      const taken = names === undefined ? passedOn.names : passedOn.names?.filter((name) => names.includes(name));
      if (taken === undefined || taken.length > 0) follow({ from: passedOn.from, names: taken }, target, importer);
    }
  };
  for (const [path, all] of imports) {
    // An index that only passes names on uses none of them.
    for (const one of all) if (basename(path) !== 'index.ts' || !one.isExport) follow(one, path, path);
  }
  return importers;
}

/** The source of what a package is imported as, such as `@concierge/model/openai`, by the manifests of the packages. */
function readExports(root) {
  const exported = new Map();
  for (const path of globSync('{packages,services}/*/package.json', { cwd: root })) {
    const { name, exports = {} } = JSON.parse(readFileSync(join(root, path), 'utf8'));
    for (const [part, { '@concierge/source': source }] of Object.entries(exports)) {
      if (source !== undefined) exported.set(join(name, part), join(dirname(path), source));
    }
  }
  return exported;
}

/** What a file imports and passes on, wherever it stands. */
function listImports(path, text) {
  const found = [];
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (typeof node !== 'object' || node === null) return;
    const one = importBy(node);
    if (one !== undefined) found.push(one);
    for (const [name, child] of Object.entries(node)) if (name !== 'span') visit(child);
  };
  visit(parseSync(text, { syntax: 'typescript', tsx: path.endsWith('x'), target: 'esnext' }).body);
  return found;
}

/** `names` is undefined where all of it is taken, as by `import()`. */
function importBy({ type, source, specifiers = [], callee, arguments: given }) {
  if (type === 'ImportDeclaration') return { from: source.value, names: namesIn(specifiers), isExport: false };
  if (type === 'ExportNamedDeclaration' && source) return { from: source.value, names: namesIn(specifiers), isExport: true };
  if (callee?.type !== 'Import' && callee?.value !== 'URL') return undefined;
  return { from: String(given[0]?.expression.value), isExport: false };
}

function namesIn(specifiers) {
  if (specifiers.some(({ type }) => type === 'ImportNamespaceSpecifier')) return undefined;
  return specifiers.map(({ imported, orig, local }) => (imported ?? orig ?? local).value);
}

/** The findings of both over a tree, one line each. */
export function checkLayout(root) {
  const paths = globSync(sources, { cwd: root, exclude: isLeftOut })
    .filter((path) => !isLeftOut(path))
    .toSorted();
  const files = new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
  return [
    ...findFullFolders(paths).map(({ folder, count }) => `${folder}: ${count} files, and may have ${FILES_MAX}`),
    ...findSmallFiles(files, readExports(root)).map(
      ({ path, lines, by }) => `${path}: ${lines} lines for ${by === undefined ? 'no importer' : `${by} alone`}`,
    ),
  ];
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const findings = checkLayout(process.argv[2] ?? '.');
  for (const line of findings) process.stdout.write(`${line}\n`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}
