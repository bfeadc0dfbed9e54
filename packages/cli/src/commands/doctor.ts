import { access, constants, statfs } from 'node:fs/promises';
import { hasUsableKey, loadProviders } from '@concierge/model';
import { assertNoEviction } from '@concierge/runtime';
import { keyOf } from '@concierge/turn';
import { Command } from 'commander';
import { table } from '../answer.ts';
import type { Deployment } from '../deployment.ts';
import { failureLine } from '../failure.ts';
import { checkSandbox } from './doctor/sandbox.ts';
import { failed, ok, warning, type Finding } from './doctor/finding.ts';
import type { CommandContext } from '../command-context.ts';

const NODE_MAJOR = 24;
/** Workers report that they live every two seconds. */
const WORKER_SILENCE_MS = 10_000;
const LOW_DISK_BYTES = 1024 ** 3;

type Check = (deployment: Deployment) => Promise<Finding>;

async function checkNode(): Promise<Finding> {
  const { node } = process.versions;
  return Number(node.split('.', 1)[0]) >= NODE_MAJOR ? ok(node) : failed(`${node}; Node ${String(NODE_MAJOR)} or newer is needed`);
}

async function checkDataFolder({ config }: Deployment): Promise<Finding> {
  await access(config.dataDir, constants.W_OK | constants.R_OK);
  const { bavail, bsize } = await statfs(config.dataDir);
  const free = `${(Number(bavail * bsize) / 1024 ** 3).toFixed(1)} GiB free`;
  return bavail * bsize < LOW_DISK_BYTES ? warning(`${config.dataDir}, only ${free}`) : ok(`${config.dataDir}, ${free}`);
}

async function checkRedis(deployment: Deployment): Promise<Finding> {
  const redis = await deployment.redis();
  await assertNoEviction(redis, deployment.log);
  const version = /redis_version:(\S+)/u.exec(await redis.info('server'))?.[1] ?? 'of unknown version';
  const durable = /aof_enabled:1/u.test(await redis.info('persistence'));
  return durable
    ? ok(`Redis ${version}, append-only file on`)
    : warning(`Redis ${version}, but its append-only file is off: a restart of it loses live streams`);
}

async function checkIndex(deployment: Deployment): Promise<Finding> {
  await (await deployment.index()).check();
  return ok(deployment.config.databaseUrl === undefined ? 'SQLite' : 'PostgreSQL');
}

async function checkProviders({ config }: Deployment): Promise<Finding> {
  const providers = await loadProviders(config.providersFile, config.environment);
  const found = config.mayUseDemoModel ? warning : failed;
  const answers = config.mayUseDemoModel ? 'the demo model answers' : 'and in production nothing answers without DEMO_MODEL=1';
  if (providers === undefined) return found(`${config.providersFile} does not exist: ${answers}`);
  if (!hasUsableKey(providers)) return found(`no usable key, ${answers} (${providers.unusable.join('; ')})`);
  return ok([`default ${providers.default}`, ...providers.unusable].join('; '));
}

async function checkWorkers(deployment: Deployment): Promise<Finding> {
  const redis = await deployment.redis();
  const [secondsNow] = await redis.time();
  const alive = await redis.zcount(keyOf.workers, Number(secondsNow) * 1000 - WORKER_SILENCE_MS, '+inf');
  return alive > 0 ? ok(`${String(alive)} alive`) : failed('none is alive: accepted turns wait');
}

const checks: Readonly<Record<string, Check>> = {
  node: checkNode,
  data: checkDataFolder,
  redis: checkRedis,
  index: checkIndex,
  providers: checkProviders,
  sandbox: async ({ config }) => checkSandbox(config.sandbox),
  workers: checkWorkers,
};

async function examine({ deployment, answer }: CommandContext): Promise<void> {
  const findings: (Finding & { readonly name: string })[] = [];
  for (const [name, check] of Object.entries(checks)) {
    const finding = await check(deployment).catch((error: unknown) => failed(failureLine(error)));
    findings.push({ name, ...finding });
  }
  const healthy = findings.every(({ status }) => status !== 'failed');
  const rows = findings.map(({ name, status, detail }) => [name, status, detail]);
  answer({ json: { ok: healthy, checks: findings }, text: table(['CHECK', 'STATE', 'DETAIL'], rows), failed: !healthy });
}

/** `concierge doctor` */
export function doctorCommand(context: CommandContext): Command {
  return new Command('doctor').action(async () => await examine(context));
}
