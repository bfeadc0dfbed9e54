// Run by the start script in a process of its own, which can load the services' sources: reads the configuration of all
// of them, and asks what they would need from outside, before any of them is started. Prints one JSON line.
import { findProviders } from '../../services/worker/src/choose-models.ts';
import { serviceNames } from './services.mjs';

/** As long as a server nearby ever takes; the services themselves wait longer. */
const REDIS_TIMEOUT_MS = 5000;

const problems = new Set();

/** What `read` resolves with; undefined when that is bad configuration, which is noted. */
async function noteProblems(read) {
  try {
    return await read();
  } catch (error) {
    if (error.name !== 'ConfigError') throw error;
    for (const problem of error.problems) problems.add(problem);
    return undefined;
  }
}

async function readServiceConfigs() {
  const configs = {};
  for (const name of serviceNames) {
    const { readConfig } = await import(`../../services/${name}/src/config.ts`);
    configs[name] = await noteProblems(async () => readConfig());
  }
  return configs;
}

/** Not asked for the start script's own Redis, which does not run yet. */
async function checkServers({ redisUrl, databaseUrl, dataDir }) {
  // On demand: their clients are most of what this process would load.
  const { assertNoEviction, createLog, openRedis } = await import('../../packages/runtime/src/index.ts');
  const log = createLog({ service: 'start', level: 'silent' });
  await using stack = new AsyncDisposableStack();
  if (process.argv.includes('--redis')) {
    const redis = await noteProblems(() => openRedis({ url: redisUrl, role: 'worker', log, timeoutMs: REDIS_TIMEOUT_MS }, stack));
    if (redis !== undefined) await noteProblems(() => assertNoEviction(redis, log));
  }
  if (databaseUrl === undefined) return;
  const { openIndex } = await import('../../packages/index/src/index.ts');
  const index = await noteProblems(() => openIndex({ databaseUrl, databasePool: 1, dataDir, log }));
  await index?.close();
}

const { gateway, worker } = await readServiceConfigs();
const found = worker === undefined ? undefined : await noteProblems(() => findProviders(worker));
const asksServers = process.argv.includes('--redis') || gateway?.databaseUrl !== undefined;
if (problems.size === 0 && asksServers) await checkServers(gateway);
process.stdout.write(`${JSON.stringify({ problems: [...problems], isDemo: found?.providers === undefined })}\n`);
