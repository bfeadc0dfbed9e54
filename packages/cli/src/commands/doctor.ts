import { access, constants, statfs } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describeShortage, readConnectionBudget } from '@concierge/core';
import { hasUsableKey, loadProviders } from '@concierge/model';
import { assertNoEviction, readVersion, type SandboxSettings, type Version } from '@concierge/runtime';
import { readClocks, readRunningProcesses, readWorkers, type ProcessFacts, type ReportedWorker } from '@concierge/turn';
import { Command } from 'commander';
import { table, type CommandContext, failureLine } from '../answer.ts';
import type { Deployment } from '../deployment.ts';

const NODE_MAJOR = 24;
const CLOCK_TOLERANCE_MS = 2000;
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

/** What the workers that run say of themselves; none when Redis cannot be asked, which has its own line. */
async function readReports(deployment: Deployment): Promise<ReportedWorker[]> {
  const redis = await deployment.redis().catch(() => undefined);
  return redis === undefined ? [] : await readWorkers(redis);
}

/** Each thing that was said, once, with how many workers say it where they differ. */
function collect(said: readonly string[]): string {
  const counts = [...Map.groupBy(said, (line) => line)];
  if (counts.length === 1) return counts[0]?.[0] ?? '';
  return counts.map(([line, those]) => `${line} (${String(those.length)} of ${String(said.length)} workers)`).join('; ');
}

const fromHere = 'no worker runs that could be asked; as this command is configured:';

async function checkProviders(deployment: Deployment): Promise<Finding> {
  const reports = (await readReports(deployment)).filter(({ model }) => model !== undefined);
  if (reports.length === 0) return await checkOwnProviders(deployment);
  const said = reports.map(({ isDemo, model = '', unusableProviders = [] }) =>
    [isDemo ? 'the demo model answers' : `default ${model}`, ...unusableProviders].join('; '),
  );
  const found = reports.some(({ isDemo }) => isDemo) || new Set(said).size > 1 ? warning : ok;
  return found(collect(said));
}

async function checkOwnProviders({ config }: Deployment): Promise<Finding> {
  const providers = await loadProviders(config.providersFile, config.environment);
  if (providers === undefined) return warning(`no worker runs that could be asked, and there is no ${config.providersFile} here`);
  const found = config.mayUseDemoModel ? warning : failed;
  const answers = config.mayUseDemoModel ? 'the demo model answers' : 'and in production nothing answers without DEMO_MODEL=1';
  if (!hasUsableKey(providers)) return found(`${fromHere} no usable key, ${answers} (${providers.unusable.join('; ')})`);
  return ok([`${fromHere} default ${providers.default}`, ...providers.unusable].join('; '));
}

async function checkSandbox(deployment: Deployment): Promise<Finding> {
  const sandboxes = (await readReports(deployment)).flatMap(({ sandbox }) => sandbox ?? []);
  if (sandboxes.length === 0) {
    const { status, detail } = await checkOwnSandbox(deployment.config.sandbox);
    return { status, detail: `${fromHere} ${detail}` };
  }
  const said = sandboxes.map(({ isUsable, reason }) => (isUsable ? reason : `${reason}: ${withoutSandbox}`));
  const found = sandboxes.every(({ isUsable }) => isUsable) && new Set(said).size === 1 ? ok : warning;
  return found(collect(said));
}

async function checkWorkers(deployment: Deployment): Promise<Finding> {
  const reports = await readWorkers(await deployment.redis());
  if (reports.length === 0) return failed('none is alive: accepted turns wait');
  const draining = reports.filter((report) => report.draining).length;
  const alive = `${String(reports.length)} alive`;
  if (draining === reports.length) return failed(`${alive}, all of them stopping: accepted turns wait`);
  return ok(draining === 0 ? alive : `${alive}, ${String(draining)} of them stopping`);
}

/** Signatures of providers carry times, and so do the files. */
async function checkClocks(deployment: Deployment): Promise<Finding> {
  const redis = await deployment.redis();
  const { aheadMs } = await readClocks(redis);
  const running = await readRunningProcesses(redis);
  const clocks = [
    { name: 'this machine', aheadMs },
    ...running.map((each) => ({ name: `${each.service} on ${each.host}`, aheadMs: each.clockAheadMs })),
  ];
  const wrong = clocks.filter((clock) => Math.abs(clock.aheadMs) > CLOCK_TOLERANCE_MS);
  if (wrong.length === 0) return ok(`within ${String(CLOCK_TOLERANCE_MS / 1000)} s of Redis’ clock`);
  const described = wrong.map((clock) => {
    const direction = clock.aheadMs > 0 ? 'ahead of' : 'behind';
    return `${clock.name} is ${(Math.abs(clock.aheadMs) / 1000).toFixed(1)} s ${direction} Redis’ clock`;
  });
  return warning([...new Set(described)].join('; '));
}

async function checkConnections(deployment: Deployment): Promise<Finding> {
  const budget = await readConnectionBudget({ redis: await deployment.redis(), index: await deployment.index() });
  if (budget === undefined) return ok('SQLite: there is no limit');
  const { processes, needed, available } = budget;
  if (needed > available) return warning(describeShortage(budget));
  return ok(`${String(processes)} processes may open ${String(needed)} of ${String(available)} connections to PostgreSQL`);
}

async function checkVersions(deployment: Deployment): Promise<Finding> {
  const own = describeVersion(readVersion());
  const running = await readRunningProcesses(await deployment.redis());
  const byVersion = Map.groupBy(running, describeVersion);
  const parts = Array.from(byVersion, ([version, those]) => `${version}: ${countServices(those)}`);
  if (byVersion.size === 0) return ok(`${own}: this command; no process announces itself`);
  if (byVersion.size === 1 && byVersion.has(own)) return ok(parts.join('; '));
  const command = byVersion.has(own) ? [] : [`${own}: this command`];
  return warning(`they differ, as during an upgrade: ${[...parts, ...command].join('; ')}`);
}

function describeVersion({ version, build }: Version): string {
  return `${version} (${build})`;
}

function countServices(processes: readonly ProcessFacts[]): string {
  const services = Map.groupBy(processes, ({ service }) => service);
  const byName = [...services].toSorted(([one], [other]) => one.localeCompare(other));
  return byName.map(([service, those]) => `${String(those.length)} ${service}`).join(', ');
}

const checks: Readonly<Record<string, Check>> = {
  node: checkNode,
  data: checkDataFolder,
  redis: checkRedis,
  clock: checkClocks,
  index: checkIndex,
  connections: checkConnections,
  workers: checkWorkers,
  providers: checkProviders,
  sandbox: checkSandbox,
  versions: checkVersions,
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

/** What a worker with this command's machine and configuration would choose. */
async function checkOwnSandbox(choice: SandboxSettings): Promise<Finding> {
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
