// `node infra/check/words.mjs`: fails on words that docs/glossary.md replaced, in code, comments, documents and names,
// on functions that are not named after what they do, and on comments wider than a reader's window.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/** Words of sentences, in any case, and what stands in their place. */
const prose = {
  whoever: 'name the subject',
  somebody: 'name the subject',
  'let go of': 'release, stop',
  'lets go of': 'releases, stops',
  laid: 'enqueued, written, restored',
  relaid: 'restored',
  doorbell: 'wake-up',
  doorbells: 'wake-ups',
  ripe: 'due',
  ripens: 'is due',
  retell: 'replay',
  retelling: 'replay',
  untold: 'pending',
  lender: 'capability factory',
  lenders: 'capability factories',
  hindrance: 'blocked reason',
};

/**
 * Identifiers: the linter keeps them out of code (`id-denylist` in .oxlintrc.json), this check out of comments,
 * documents and Lua.
 */
const denied = JSON.parse(readFileSync(new URL('../../.oxlintrc.json', import.meta.url), 'utf8')).rules['id-denylist'].slice(1);
/** Denied but in a few files, which the linter cannot tell from others by a name alone. */
const identifiers = { accountId: 'tenantId', ...Object.fromEntries(denied.map((word) => [word, 'see docs/glossary.md'])) };

/** Where an old word is the subject, is stored, or is not ours. */
const exempt = [
  /^docs\/(?:spec\/|glossary\.md$)/u,
  /^CHANGELOG\.md$/u,
  /^infra\/check\/words/u,
  /^packages\/acceptance\/(?:retrieval|bench\/memory)\//u,
  /\/fixtures\//u,
  // What models and people read as text, and the picture in one decision page.
  /^packages\/(?:agent\/src\/(?:prompt|tools)|tenant\/starter)\//u,
  /^docs\/(?:tools\.md$|decisions\/0002-)/u,
  /^pnpm-lock\.yaml$/u,
];
/** Names that a stored file, a key's payload or the specification has. */
const stored = {
  accountId:
    /^packages\/(?:tenant\/(?:src\/keys\/|src\/tenants\.ts|src\/inbox\/|test\/)|contract\/src\/turns\/turn\.ts)|^docs\/decisions\/|^packages\/acceptance\//u,
};

const escape = (text) => text.replaceAll(' ', '[ \\n]+(?:(?://|\\*|--|#) ?)?');
const rules = [
  // bounded-expression: built from the words of this file
  ...Object.entries(prose).map(([word, instead]) => ({ word, instead, pattern: new RegExp(`\\b${escape(word)}\\b`, 'giu') })),
  // bounded-expression: as above
  ...Object.entries(identifiers).map(([word, instead]) => ({ word, instead, pattern: new RegExp(`\\b${word}\\b`, 'gu') })),
];

const COLUMNS_MAX = 120;
/** But for directives to the linter, which are one line by their grammar. */
const comment = /^\s*(?:\/\/(?! eslint-disable)|\/?\*|--)/u;

/** One line for each place, as `file:line: …`. */
export function findOldWords(file, text) {
  if (exempt.some((pattern) => pattern.test(file))) return [];
  // Messages that tests send are no prose of ours; identifiers hold there, too.
  const isTest = /\/test\/|\.test\./u.test(file);
  return rules.flatMap(({ word, instead, pattern }) =>
    stored[word]?.test(file) || (isTest && word in prose)
      ? []
      : [...text.matchAll(pattern)].map(({ index }) => {
          const line = text.slice(0, index).split('\n').length;
          return `${file}:${line}: "${word}" is now: ${instead}`;
        }),
  );
}

/** Comments of more columns than the limit, one line for each: the formatter leaves comments as they are. */
export function findWideComments(file, text) {
  if (!/\.(?:tsx?|[cm]js|lua)$/u.test(file)) return [];
  return text.split('\n').flatMap((line, at) => {
    const columns = [...line].length;
    return columns > COLUMNS_MAX && comment.test(line) ? [`${file}:${at + 1}: a comment of ${columns} columns`] : [];
  });
}

/** Lines that declare a function: by name, as a constant, as a method of a class or of an object. */
const declaredOf = [
  /\bfunction\*? +(?<name>[a-z]\w*Of)\b/u,
  // bounded-expression: one line of this repository's code
  /\b(?:const|let) +(?<name>[a-z]\w*Of)\b[^=]*= *(?:async *)?(?:function\b|\(|[a-z]\w* *=>)/u,
  // bounded-expression: as above
  /^ +(?:(?:public|private|protected|static|override|async|readonly) +)*[#*]?(?<name>[a-z]\w*Of)(?:<.*>)?\(.*\{$/u,
];
/** The keys of Redis, and methods of the language that a class overrides. */
const namedOf = new Set(['keyOf', 'valueOf', 'indexOf', 'lastIndexOf']);

/** Functions whose name is no verb and its object, one line for each: `keysOf` may read, build or convert keys. */
export function findNamesOf(file, text) {
  if (!/\.(?:tsx?|[cm]js)$/u.test(file) || file.startsWith('infra/check/words')) return [];
  return text.split('\n').flatMap((line, at) => {
    const name = declaredOf.map((pattern) => pattern.exec(line)?.groups.name).find((found) => found !== undefined);
    return name === undefined || namedOf.has(name) ? [] : [`${file}:${at + 1}: ${name} is not a verb and its object`];
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const files = execFileSync('git', ['ls-files', '-z', '*.ts', '*.tsx', '*.mjs', '*.cjs', '*.lua', '*.md', '*.yml', '*.sh'], {
    encoding: 'utf8',
  });
  const found = files
    .split('\0')
    .filter((file) => file !== '')
    .flatMap((file) => {
      const text = readFileSync(file, 'utf8');
      return [...findOldWords(file, file), ...findOldWords(file, text), ...findNamesOf(file, text), ...findWideComments(file, text)];
    });
  for (const line of found) process.stdout.write(`${line}\n`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
