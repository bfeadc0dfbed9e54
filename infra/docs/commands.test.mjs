import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { ProvidersFile, errorCodes, toolNames } from '@concierge/contract';
import { createProgram } from '../../packages/cli/src/run.ts';
import { openApiDocument } from '../../services/gateway/src/docs/openapi.ts';
import { root } from '../bootstrap.mjs';
import { allPages, readBlocks, readConciergeCommands, readPage, readShellLines, readSpans, userPages } from './shell-blocks.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');

/** What is wrong in each page, as `page: …`. */
const findIn = (pages, find) => pages.flatMap((page) => find(readPage(page)).map((problem) => `${page}: ${problem}`));

/** Why a block of shell is not run by commands.int.test.mjs, and what runs the like of it. */
const reasons = {
  git: 'the test has its checkout',
  started: 'the test itself starts the system so; npm test is what runs the test',
  docker: 'an engine with images: npm test -- deploy',
  cluster: 'a cluster: the chart is rendered and checked by infra/helm',
  provider: "an account with a channel's provider: servers of the same protocol in packages/channel and services",
  receiver: 'a receiver at a public address: packages/turn/test/events.int.test.ts',
  remote: 'another machine',
  bench: 'a quiet machine for half an hour; its flags: infra/usage.test.mjs',
};

describe('blocks of shell', () => {
  const blocks = userPages.flatMap((page) => readBlocks(readPage(page)).map((block) => ({ page, ...block })));

  it('are run, or name a reason that is known', () => {
    expect(blocks.filter(({ reason }) => reason !== undefined && !(reason in reasons))).toEqual([]);
    expect(Object.keys(reasons).filter((reason) => !blocks.some((block) => block.reason === reason))).toEqual([]);
  });

  it('that are not run are these, and no others', () => {
    const counted = blocks.filter(({ reason }) => reason !== undefined).map(({ page, reason }) => `${page} ${reason}`);
    const listed = Object.entries(Object.groupBy(counted, (each) => each)).map(([each, all]) => `${each} ${all.length}`);
    expect(listed.toSorted()).toEqual([
      'README.md git 1',
      'README.md started 1',
      'docs/backup.md remote 1',
      'docs/channels.md provider 3',
      'docs/deploying.md docker 4',
      'docs/events.md receiver 2',
      'docs/operators.md docker 1',
      'docs/performance.md bench 1',
      'infra/helm/concierge/README.md cluster 1',
    ]);
  });

  it('are marked as such: none hides in a block without a language', () => {
    const typed = /^(?:curl|npm|npx|concierge|docker|git|kubectl|helm|node|infra\/|redis-cli) /mu;
    const hidden = blocks.filter(({ language, body }) => !['sh', 'mermaid', 'json', 'text'].includes(language) && typed.test(body));
    expect(hidden.map(({ page, body }) => `${page}: ${body}`)).toEqual([]);
  });
});

/** Tools that commands of agents call in a sandbox are no commands of operators. */
const isTool = (word) => word === '<tool>' || word === 'shop_hours' || toolNames.includes(word);

/** The words that are arguments, and the flags that the command does not have. */
function sortWords(command, words) {
  const unknown = [];
  const values = [];
  for (let at = 0; at < words.length; at++) {
    const [flag] = words[at].split('=', 1);
    if (!/^--?[a-zA-Z]/u.test(flag)) {
      if (flag !== '…') values.push(flag);
      continue;
    }
    const option = [...command.options].find(({ short, long }) => flag === short || flag === long);
    if (option === undefined && flag !== '--help') unknown.push(flag);
    if (option?.required && !words[at].includes('=')) at++;
  }
  return { values, unknown };
}

/** What the command line does not have of a command. */
function findUnknown(parent, [first = '', ...words]) {
  if (/^(?:-|…|$)/u.test(first)) return sortWords(parent, [first, ...words].filter(Boolean)).unknown;
  return first.split('|').flatMap((name) => {
    const command = parent.commands.find((each) => each.name() === name);
    if (command === undefined) return [`no command ${name}`];
    if (command.commands.length > 0) return findUnknown(command, words);
    const { values, unknown } = sortWords(command, words);
    const taken = command.registeredArguments;
    const isOpen = taken.at(-1)?.variadic === true;
    return !isOpen && values.length > taken.length ? [...unknown, `too many arguments: ${values.join(' ')}`] : unknown;
  });
}

describe('commands in the documents', () => {
  let program;
  beforeAll(async () => {
    const bare = await createProgram({}, []);
    program = await createProgram(
      {},
      bare.commands.map((command) => command.name()),
    );
  });

  it('exist with these flags in the command line', () => {
    const problems = findIn(allPages, (text) =>
      readConciergeCommands(text)
        .filter(([first]) => !isTool(first))
        .flatMap((words) => findUnknown(program, words).map((problem) => `concierge ${words.join(' ')}: ${problem}`)),
    );
    expect(problems).toEqual([]);
  });

  it('are found out when they do not', () => {
    const wrong = ['tenant make acme', 'tenant create acme --size 3', 'doctor now', 'key list|rotat acme'];
    const commands = readConciergeCommands(wrong.map((each) => `\`concierge ${each}\``).join('\n'));
    expect(commands.map((words) => findUnknown(program, words).length > 0)).toEqual([true, true, true, true]);
  });

  it('are scripts of package.json after npm run', () => {
    const { scripts } = JSON.parse(read('package.json'));
    const problems = findIn(allPages, (text) =>
      [...text.matchAll(/\bnpm run ([a-z][\w-]*)/gu)].map(([, name]) => name).filter((name) => !(name in scripts)),
    );
    expect(problems).toEqual([]);
  });

  it('start files of the repository after node', () => {
    const problems = findIn(allPages, (text) =>
      [...readSpans(text), ...readShellLines(text)]
        .flatMap((line) => [...(/^(?:npx )?node (?:--\S+ )*([\w/.-]+\.(?:mjs|ts))/u.exec(line) ?? [])].slice(1))
        .filter((file) => !existsSync(join(root, file))),
    );
    expect(problems).toEqual([]);
  });
});

/** Names in capitals that no service reads: words of others, names in examples, what the tests of examples read. */
const foreign = /^(?:ENV_FILE|NAME_FILE|LATER_VERSION|CONCIERGE_\w+|WHATSAPP_\w+|\w+_API_KEY(?:_FILE)?)$/u;

describe('variables in the documents', () => {
  it('are in .env.example, or read by the bench', () => {
    const ofServices = [...read('.env.example').matchAll(/^#?([A-Z][A-Z0-9_]*)=/gmu)].map(([, name]) => name);
    const ofBench = read('packages/acceptance/bench/config.ts').match(/\bBENCH_[A-Z_]+\b/gu);
    const known = new Set([...ofServices, ...ofBench]);
    const problems = findIn(userPages, (text) =>
      [...readSpans(text), ...readShellLines(text)]
        .flatMap((line) => line.match(/\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\b/gu) ?? [])
        .filter((name) => !known.has(name) && !foreign.test(name)),
    );
    expect(problems).toEqual([]);
  });
});

/** Whether a path of a page is that of a route, or with a slash at its end the beginning of some. */
function isRoute(path, routes) {
  if (path === '/v1') return true;
  if (path.endsWith('/')) return routes.some((route) => route.startsWith(path));
  const parts = path.split('/');
  return routes.some((route) => {
    const wanted = route.split('/');
    if (wanted.length !== parts.length && wanted.at(-1) !== '{path}') return false;
    return wanted.every((part, at) => part.startsWith('{') || part === parts[at]);
  });
}

describe('paths in the documents', () => {
  const routes = Object.keys(openApiDocument().paths);

  it('are in the OpenAPI document', () => {
    const paths = /(?<![\w.…/-])(?:[Ll]ocalhost:\d+|GATEWAY:8000|\$URL)?(\/(?:api|v1|ops\/api|webhook|livez|readyz)(?:\/[^\s`'"?,;)]*)?)/gu;
    const problems = findIn(userPages, (text) =>
      [...readSpans(text), ...readShellLines(text)]
        .filter((line) => !/https:\/\//u.test(line))
        .flatMap((line) => [...line.replaceAll(/https?:\/\//gu, '').matchAll(paths)].map(([, path]) => path))
        .filter((path) => !path.includes('…') && !isRoute(path, routes)),
    );
    expect(problems).toEqual([]);
  });
});

describe('docs/providers.md', () => {
  it('has files that the workers read', () => {
    const files = readBlocks(readPage('docs/providers.md')).filter(({ language }) => language === 'json');
    expect(files.length).toBeGreaterThan(2);
    for (const { body } of files) ProvidersFile.parse(JSON.parse(body));
  });
});

describe('docs/troubleshooting.md', () => {
  const sources = globSync('{infra/*.mjs,infra/start/*.mjs,packages/*/src/**/*.ts,services/*/src/**/*.ts}', { cwd: root })
    .filter((path) => !/\.test\./u.test(path))
    .map((path) => read(path).replaceAll(String.raw`\u2019`, '’'))
    .join('\n');
  const page = readPage('docs/troubleshooting.md');

  it('shows messages as they stand in the code', () => {
    const shown = readBlocks(page)
      .filter(({ language }) => language === 'text')
      .flatMap(({ body }) => body.split('\n'));
    const cells = page.split('\n').flatMap((line) => /^\| (?<seen>[^|]*) \|/u.exec(line)?.groups.seen ?? []);
    const seen = [...shown, ...cells.flatMap((cell) => [...readSpans(cell), ...[...cell.matchAll(/"([^"]+)"/gu)].map(([, text]) => text)])];
    expect(seen.length).toBeGreaterThan(40);
    const fragments = seen.flatMap((text) => text.split('…')).map((text) => text.trim());
    expect(fragments.filter((fragment) => fragment.length > 3 && !sources.includes(fragment))).toEqual([]);
  });

  it('has status and title of each code as they are', () => {
    const rows = [...page.matchAll(/^\| (\d{3}) `(\w+)`, "([^"]+)"/gmu)].filter(([line]) => !line.includes('operators'));
    expect(rows.length).toBeGreaterThan(10);
    const wrong = rows.filter(([, status, code, title]) => errorCodes[code]?.status !== Number(status) || errorCodes[code].title !== title);
    expect(wrong.map(([line]) => line)).toEqual([]);
  });
});
