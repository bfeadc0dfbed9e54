// Node itself loads the tests, and strips their types (infra/test/native-runtime.mjs).
const shared = {
  testEnvironment: '<rootDir>/infra/test/native-environment.mjs',
  runtime: '<rootDir>/infra/test/native-runtime.mjs',
  transform: {},
  modulePathIgnorePatterns: ['/dist/', '<rootDir>/.cache/', '<rootDir>/data/'],
};

const project = (displayName, ...patterns) => ({ ...shared, displayName, testMatch: patterns.map((pattern) => `<rootDir>/${pattern}`) });

/** The cases of the contract over these stores, which their fixture reads. */
const contractProject = (displayName, globals) => ({ ...project(displayName, 'packages/acceptance/contract/**/*.test.ts'), globals });

/**
 * A slow machine is no failure: what hangs is found all the same. More than all waits of a test together, so that the
 * wait that failed is reported; tests have no shorter times of their own.
 */
const TEST_TIMEOUT_MS = 240_000;

/** What Jest keeps of each file makes its processes grow by some 4 MB a file. */
const WORKER_HEAP = '512MB';

export default {
  coverageProvider: 'v8',
  watchman: false,
  testTimeout: TEST_TIMEOUT_MS,
  workerIdleMemoryLimit: WORKER_HEAP,
  testSequencer: '<rootDir>/infra/test/longest-first.mjs',
  projects: [
    project('unit', '{packages,services}/*/{,web/}src/**/*.test.ts', 'infra/**/!(*.int|*.deploy|*.stack).test.mjs'),
    project('integration', '{packages,services}/*/test/**/*.int.test.ts', 'infra/**/*.int.test.mjs'),
    contractProject('contract', { database: 'sqlite' }),
    contractProject('contract-postgres', { database: 'postgres' }),
    contractProject('contract-cluster', { database: 'sqlite', redis: 'cluster' }),
    contractProject('contract-network', { database: 'postgres', disk: 'network' }),
    project('e2e', 'packages/acceptance/e2e/**/*.test.ts'),
    project('chaos', 'packages/acceptance/chaos/**/*.test.ts'),
    project('stack', 'infra/deploy/*.stack.test.mjs'),
    project('deploy', 'infra/deploy/*.deploy.test.mjs'),
  ],
};
