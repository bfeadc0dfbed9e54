import { access, constants, statfs } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { hasUsableKey, loadProviders } from '@concierge/model';
import { assertNoEviction, type SandboxSettings } from '@concierge/runtime';
import { keyOf } from '@concierge/turn';
import { Command } from 'commander';
import { table, type CommandContext, failureLine } from '../answer.ts';
import type { Deployment } from '../deployment.ts';

const NODE_MAJOR = 24;
/** Workers report that they live every two seconds. */
const WORKER_SILENCE_MS = 10_000;
const LOW_DISK_BYTES = 1024 ** 3;

const PROGRAM_TIMEOUT_MS = 5000;
const withoutSandbox = 'bash and exec answer with an error';

interface Finding {
  readonly status: 'ok' | 'warning' | 'failed';
  readonly detail: string;
}

const ok = (detail: string): Finding => ({ status: 'ok', detail });
const warning = (detail: string): Finding => ({ status: 'warning', detail });
const failed = (detail: string): Finding => ({ status: 'failed', detail });

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

const runProgram = promisify(execFile);

/** What it printed; undefined when it failed or is not there. */
async function readOutput(command: string, args: readonly string[]): Promise<string | undefined> {
  return await runProgram(command, args, { timeout: PROGRAM_TIMEOUT_MS }).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
}

/** Undefined when Docker can be the sandbox of this machine, else what is missing. */
async function whyNotDocker({ image, runtime }: SandboxSettings): Promise<string | undefined> {
  const runtimes = await readOutput('docker', ['info', '--format', '{{json .Runtimes}}']);
  // Without an engine, the client prints only its own data.
  if (runtimes === undefined || !runtimes.startsWith('{')) return 'no Docker engine answers';
  if ((await readOutput('docker', ['image', 'inspect', '--format', '{{.Id}}', image])) === undefined) {
    return `the Docker engine has no image ${image} (node infra/sandbox/build.mjs makes it)`;
  }
  if (runtime !== undefined && !runtimes.includes(JSON.stringify(runtime))) return `the Docker engine has no runtime ${runtime}`;
  return undefined;
}

async function whyNotBubblewrap(): Promise<string | undefined> {
  if ((await readOutput('bwrap', ['--version'])) === undefined) return 'bubblewrap is not installed';
  const namespaces = ['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--die-with-parent', '--cap-drop', 'ALL'];
  const asUser = process.getuid?.() === 0 ? [] : ['--unshare-user', '--disable-userns'];
  const places = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'];
  const made = await readOutput('bwrap', [...namespaces, ...asUser, ...places, 'true']);
  return made === undefined ? 'bubblewrap cannot make a sandbox here (are user namespaces switched off?)' : undefined;
}

/** What a worker on this machine would choose; the workers of another machine choose for themselves. */
async function checkSandbox(choice: SandboxSettings): Promise<Finding> {
  if (choice.kind === 'off') return warning(`switched off: ${withoutSandbox}`);
  const missing: string[] = [];
  if (choice.kind !== 'bubblewrap') {
    const reason = await whyNotDocker(choice);
    if (reason === undefined)
      return ok(`Docker, image ${choice.image}${choice.runtime === undefined ? '' : `, runtime ${choice.runtime}`}`);
    missing.push(reason);
  }
  if (choice.kind !== 'docker') {
    const reason = await whyNotBubblewrap();
    if (reason === undefined) return ok(['bubblewrap', ...missing].join('; '));
    missing.push(reason);
  }
  return warning(`${missing.join('; ')}: ${withoutSandbox}`);
}
