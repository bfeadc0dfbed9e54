// Node >= 24, NODE_OPTIONS=--experimental-vm-modules. No transformer: Node strips the types.
const shared = {
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'default'] },
  extensionsToTreatAsEsm: ['.ts'],
  transform: {},
  // It too has an export condition named `source`, and its sources are TypeScript that nothing strips.
  moduleNameMapper: { '^eventsource-parser$': '<rootDir>/services/ui/node_modules/eventsource-parser/dist/index.js' },
};
export default {
  coverageProvider: 'v8',
  projects: [
    { ...shared, displayName: 'unit', testMatch: ['<rootDir>/{packages,services}/*/src/**/*.test.ts'] },
    { ...shared, displayName: 'integration', testMatch: ['<rootDir>/{packages,services}/*/test/**/*.int.test.ts'] },
    { ...shared, displayName: 'contract', testMatch: ['<rootDir>/packages/acceptance/contract/**/*.test.ts'] },
  ],
};
