import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NoOperationTraceWriter, parseWorkflow } from '@actions/workflow-parser';
import { describe, expect, it } from '@jest/globals';
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

/** Sources that declare variables: `NAME: z.…` in schemas of zod. */
const declaring = /(?:config|settings|environment)\.ts$/u;
/** Of tests, never of an installation. */
const forTests = new Set(['FAILPOINT']);

function declaredVariables() {
  const sources = members.filter((folder) => existsSync(join(root, folder, 'src')));
  const files = sources.flatMap((folder) =>
    readdirSync(join(root, folder, 'src'), { recursive: true })
      .filter((name) => declaring.test(name))
      .map((name) => join(folder, 'src', name)),
  );
  const names = files.flatMap((file) => [...read(file).matchAll(/^ +([A-Z][A-Z0-9_]+)[:,]|\b([A-Z][A-Z0-9_]+): count\b/gmu)]);
  return new Set(names.map(([, own, counted]) => own ?? counted).filter((name) => !forTests.has(name)));
}

/** Name → value of every line, commented out or not. */
function exampleOf(text) {
  return Object.fromEntries([...text.matchAll(/^#?([A-Z][A-Z0-9_]*)=(.*)$/gmu)].map(([, name, value]) => [name, value]));
}

describe('.env.example', () => {
  const text = read('.env.example');
  const example = exampleOf(text);
  const composed = Object.keys(exampleOf(text.slice(text.indexOf('Only docker-compose.yml'))));

  it('has every variable that a service or the command line reads, and no other', () => {
    const declared = declaredVariables();
    expect(Object.keys(example).filter((name) => !declared.has(name) && !composed.includes(name))).toEqual([]);
    expect([...declared].filter((name) => !(name in example))).toEqual([]);
  });

  it('has every variable of the table in the README', () => {
    const table = read('README.md').split('## Configuration')[1].split('\n## ')[0];
    const named = [...table.matchAll(/^\| (`[A-Z][^|]*`) \|/gmu)].flatMap(([, cell]) => cell.match(/[A-Z][A-Z0-9_]+/gu));
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !(name in example))).toEqual([]);
  });

  it('names only what docker-compose.yml and its override read beside them', () => {
    const compose = read('docker-compose.yml') + read('infra/compose.sandbox.yml');
    expect(composed.filter((name) => !compose.includes(`\${${name}`) && !read('infra/providers.json').includes(name))).toEqual([]);
  });

  it.each(['services/gateway', 'services/worker', 'services/cron', 'services/ui', 'packages/cli'])(
    'shows the defaults of %s',
    async (folder) => {
      const { readConfig } = await import(join(root, folder, 'src', 'config.ts'));
      const needed = { REDIS_URL: 'redis://127.0.0.1', KEY_SECRET: 'k'.repeat(32) };
      const shown = Object.fromEntries(Object.entries(example).filter(([, value]) => value !== ''));
      // The command line is quieter than what runs for long.
      if (folder === 'packages/cli') delete shown.LOG_LEVEL;
      expect(JSON.parse(JSON.stringify(readConfig({ ...needed, ...shown })))).toEqual(JSON.parse(JSON.stringify(readConfig(needed))));
    },
  );
});
