import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NoOperationTraceWriter, parseWorkflow } from '@actions/workflow-parser';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { root } from '../bootstrap.mjs';
import { allFolders } from '../dev/workspace.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');
const members = allFolders(root);

describe('the licence', () => {
  it('is that of every package', () => {
    const licences = ['.', 'infra', ...members].map((folder) => [folder, JSON.parse(read(join(folder, 'package.json'))).license]);
    expect(licences.filter(([, licence]) => licence !== 'MIT')).toEqual([]);
    expect(read('LICENSE')).toMatch(/^MIT License\n/u);
  });
});

describe('the version', () => {
  it('is that of every package', () => {
    const { version } = JSON.parse(read('package.json'));
    const versions = ['infra', ...members].map((folder) => [folder, JSON.parse(read(join(folder, 'package.json'))).version]);
    expect(versions.filter(([, each]) => each !== version)).toEqual([]);
  });
});

describe('the Node of the repository', () => {
  it('is the same for version managers, pnpm and the packages that bring it', () => {
    const version = read('.node-version').trim();
    const { optionalDependencies } = JSON.parse(read('package.json'));
    expect(new Set(Object.values(optionalDependencies))).toEqual(new Set([version]));
    expect(read('pnpm-workspace.yaml')).toContain(`\nnodeVersion: ${version}\n`);
  });
});

describe('the workflow of continuous integration', () => {
  it('is one that GitHub takes, and runs .ci/run', () => {
    const content = read('.github/workflows/ci.yml');
    const { context, value } = parseWorkflow({ name: 'ci.yml', content }, new NoOperationTraceWriter());
    expect(context.errors.getErrors().map(({ message }) => message)).toEqual([]);
    expect(value).toBeDefined();
    expect(content).toMatch(/^ +run: \.ci\/run$/mu);
  });

  it('is refused when a key is misspelt', () => {
    const content = read('.github/workflows/ci.yml').replace('runs-on:', 'run-on:');
    const { context } = parseWorkflow({ name: 'ci.yml', content }, new NoOperationTraceWriter());
    expect(context.errors.getErrors()).not.toEqual([]);
  });
});

/** What each of these makes of its environment; the command line is quieter than what runs for long. */
const readers = ['services/gateway', 'services/worker', 'services/cron', 'services/ui', 'packages/cli'];
/** Without these a service does not start, or does not look at another one. */
const needed = {
  REDIS_URL: 'redis://127.0.0.1',
  DATABASE_URL: 'postgres://127.0.0.1/concierge',
  KEY_SECRET: 'k'.repeat(32),
  METRICS_PORT: '9000',
};

function tryConfig(readConfig, env) {
  try {
    return JSON.stringify(readConfig({ ...needed, ...env }));
  } catch (error) {
    return error.message;
  }
}

/** One of these has an effect on whatever reads a variable: it is refused, or changes what is made of it. */
const probes = ['probe', '1', 'https://probe.example', 'production'];

/** Whether one of these names is read at all. */
const isAnyRead = (configs, names) =>
  configs.some((readConfig) =>
    probes.some((value) => tryConfig(readConfig, Object.fromEntries(names.map((name) => [name, value]))) !== tryConfig(readConfig, {})),
  );

/** Whatever looks like a variable in sources that are shipped; most of it are constants. */
function candidates() {
  const sources = members
    .filter((folder) => existsSync(join(root, folder, 'src')))
    .flatMap((folder) => readdirSync(join(root, folder, 'src'), { recursive: true }).map((name) => join(folder, 'src', name)))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'));
  return new Set(sources.flatMap((path) => read(path).match(/\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*\b/gu) ?? []));
}

/** Name → value of every line, commented out or not. */
function readExample(text) {
  return Object.fromEntries([...text.matchAll(/^#?([A-Z][A-Z0-9_]*)=(.*)$/gmu)].map(([, name, value]) => [name, value]));
}

describe('.env.example', () => {
  const text = read('.env.example');
  const example = readExample(text);
  const composed = Object.keys(readExample(text.slice(text.indexOf('Only docker-compose.yml'))));

  let configs;
  beforeAll(async () => {
    configs = await Promise.all(readers.map(async (folder) => (await import(join(root, folder, 'src', 'config.ts'))).readConfig));
  });

  it('has every variable that a service or the command line reads', () => {
    const unnamed = [...candidates()].filter((name) => !(name in example));
    // All at once, and one by one only to say which it is.
    expect(isAnyRead(configs, unnamed) ? unnamed.filter((name) => isAnyRead(configs, [name])) : []).toEqual([]);
  });

  it('has no variable that none of them reads', () => {
    expect(Object.keys(example).filter((name) => !composed.includes(name) && !isAnyRead(configs, [name]))).toEqual([]);
  });

  it('has every variable of the table in docs/configuration.md', () => {
    const table = read('docs/configuration.md');
    const named = [...table.matchAll(/^\| (`[A-Z][^|]*`) \|/gmu)].flatMap(([, cell]) => cell.match(/[A-Z][A-Z0-9_]+/gu));
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !(name in example))).toEqual([]);
  });

  it('has no secret of a file that docs/configuration.md does not name', () => {
    const [named] = /^Each secret may stand in a file instead:[^]*?\n\n/mu.exec(read('docs/configuration.md'));
    const secrets = Object.keys(example).filter((name) => `${name}_FILE` in example);
    expect(secrets).toContain('KEY_SECRET');
    expect(secrets.filter((name) => !named.includes(name))).toEqual([]);
  });

  const compose = ['docker-compose.yml', 'infra/compose.sandbox.yml', 'infra/compose.tls.yml'].map(read).join('\n');

  it('names only what docker-compose.yml and the files beside it read beside them', () => {
    const readByCompose = (name) => name === 'COMPOSE_FILE' || compose.includes(`\${${name}`);
    expect(composed.filter((name) => !readByCompose(name))).toEqual([]);
  });

  it('has every variable that docker-compose.yml and the files beside it read, with its default', () => {
    const defaults = [...compose.matchAll(/\$\{([A-Z_]+)(?::-([^}]*))?/gu)].map(([, name, value]) => [name, value ?? '']);
    expect(defaults.filter(([name]) => !(name in example))).toEqual([]);
    const shown = defaults.filter(([name]) => composed.includes(name) && example[name] !== '');
    expect(shown.filter(([name, value]) => value !== '' && value !== example[name])).toEqual([]);
  });

  it.each(readers)('shows the defaults of %s', async (folder) => {
    const readConfig = configs[readers.indexOf(folder)];
    const shown = Object.fromEntries(Object.entries(example).filter(([, value]) => value !== ''));
    if (folder === 'packages/cli') delete shown.LOG_LEVEL;
    expect(tryConfig(readConfig, shown)).toEqual(tryConfig(readConfig, {}));
  });
});
