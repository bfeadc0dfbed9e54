import type { Finding } from '@concierge/contract';
import { assertNoEviction, readVersion, type Log, type Version } from '@concierge/runtime';
import { readClocks, readRunningProcesses, readSendsEmail, readWorkers, type ProcessFacts, type ReportedWorker } from '@concierge/turn';
import { describeShortage, readConnectionBudget } from './connection-budget.ts';
import type { Core } from './open-core.ts';

const CLOCK_TOLERANCE_MS = 2000;
/** What a worker without a sandbox means to agents. */
export const withoutSandbox = 'bash and exec answer with an error';

export type Found = Pick<Finding, 'status' | 'detail'>;

export const ok = (detail: string): Found => ({ status: 'ok', detail });
export const warning = (detail: string): Found => ({ status: 'warning', detail });
export const failed = (detail: string): Found => ({ status: 'failed', detail });

/** What a deployment is looked at by; each look says by itself what it cannot have. */
export interface Deployed {
  redis(): Promise<Core['redis']>;
  index(): Promise<Core['index']>;
  readonly hasPostgres: boolean;
  readonly log: Log;
}

/** Undefined: no worker could be asked. */
type Look = (deployed: Deployed) => Promise<Found | undefined>;

async function lookAtRedis(deployed: Deployed): Promise<Found> {
  const redis = await deployed.redis();
  await assertNoEviction(redis, deployed.log);
  const version = /redis_version:(\S+)/u.exec(await redis.info('server'))?.[1] ?? 'of unknown version';
  const durable = /aof_enabled:1/u.test(await redis.info('persistence'));
  return durable
    ? ok(`Redis ${version}, append-only file on`)
    : warning(`Redis ${version}, but its append-only file is off: a restart of it loses live streams`);
}

/** Signatures of providers carry times, and so do the files. */
async function lookAtClocks(deployed: Deployed): Promise<Found> {
  const redis = await deployed.redis();
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

async function lookAtIndex(deployed: Deployed): Promise<Found> {
  await (await deployed.index()).check();
  return ok(deployed.hasPostgres ? 'PostgreSQL' : 'SQLite');
}

async function lookAtConnections(deployed: Deployed): Promise<Found> {
  const budget = await readConnectionBudget({ redis: await deployed.redis(), index: await deployed.index() });
  if (budget === undefined) return ok('SQLite: there is no limit');
  const { processes, needed, available } = budget;
  if (needed > available) return warning(describeShortage(budget));
  return ok(`${String(processes)} processes may open ${String(needed)} of ${String(available)} connections to PostgreSQL`);
}

async function lookAtWorkers(deployed: Deployed): Promise<Found> {
  const reports = await readWorkers(await deployed.redis());
  if (reports.length === 0) return failed('none is alive: accepted turns wait');
  const leaving = reports.filter((report) => report.draining).length;
  const drained = reports.filter((report) => !report.draining && report.isDrained).length;
  const alive = `${String(reports.length)} alive`;
  if (leaving === reports.length) return failed(`${alive}, all of them stopping: accepted turns wait`);
  const parts = [
    alive,
    ...(leaving === 0 ? [] : [`${String(leaving)} of them stopping`]),
    ...(drained === 0 ? [] : [`${String(drained)} drained by an operator`]),
  ].join(', ');
  if (leaving + drained === reports.length) return failed(`${parts}: accepted turns wait`);
  return drained === 0 ? ok(parts) : warning(parts);
}

/** What the workers that run say of themselves; none when Redis cannot be asked, which has its own line. */
async function readReports(deployed: Deployed): Promise<ReportedWorker[]> {
  const redis = await deployed.redis().catch(() => undefined);
  return redis === undefined ? [] : await readWorkers(redis);
}

/** Each thing that was said, once, with how many workers say it where they differ. */
function collect(said: readonly string[]): string {
  const counts = [...Map.groupBy(said, (line) => line)];
  if (counts.length === 1) return counts[0]?.[0] ?? '';
  return counts.map(([line, those]) => `${line} (${String(those.length)} of ${String(said.length)} workers)`).join('; ');
}

async function lookAtProviders(deployed: Deployed): Promise<Found | undefined> {
  const reports = (await readReports(deployed)).filter(({ model }) => model !== undefined);
  if (reports.length === 0) return undefined;
  const said = reports.map(({ isDemo, model = '', unusableProviders = [] }) =>
    [isDemo ? 'the demo model answers' : `default ${model}`, ...unusableProviders].join('; '),
  );
  const found = reports.some(({ isDemo }) => isDemo) || new Set(said).size > 1 ? warning : ok;
  return found(collect(said));
}

async function lookAtSandbox(deployed: Deployed): Promise<Found | undefined> {
  const sandboxes = (await readReports(deployed)).flatMap(({ sandbox }) => sandbox ?? []);
  if (sandboxes.length === 0) return undefined;
  const said = sandboxes.map(({ isUsable, reason }) => (isUsable ? reason : `${reason}: ${withoutSandbox}`));
  const found = sandboxes.every(({ isUsable }) => isUsable) && new Set(said).size === 1 ? ok : warning;
  return found(collect(said));
}

/** Owners may ask for one when no staff member answers; a service without is whole all the same. */
async function lookAtEmail(deployed: Deployed): Promise<Found> {
  const sendsEmail = await readSendsEmail(await deployed.redis());
  if (sendsEmail === null) return warning('no cron runs that could be asked');
  return ok(sendsEmail ? 'owners get e-mails about unanswered handoffs' : 'SMTP_URL is not set for cron: no e-mail is sent to owners');
}

async function lookAtVersions(deployed: Deployed): Promise<Found> {
  const own = describeVersion(readVersion());
  const running = await readRunningProcesses(await deployed.redis());
  const byVersion = Map.groupBy(running, describeVersion);
  const parts = Array.from(byVersion, ([version, those]) => `${version}: ${countServices(those)}`);
  if (byVersion.size === 0) return ok(`${own}: no process announces itself`);
  if (byVersion.size === 1 && byVersion.has(own)) return ok(parts.join('; '));
  const asking = byVersion.has(own) ? [] : [`${own}: who asks`];
  return warning(`they differ, as during an upgrade: ${[...parts, ...asking].join('; ')}`);
}

function describeVersion({ version, build }: Version): string {
  return `${version} (${build})`;
}

function countServices(processes: readonly ProcessFacts[]): string {
  const services = Map.groupBy(processes, ({ service }) => service);
  const byName = [...services].toSorted(([one], [other]) => one.localeCompare(other));
  return byName.map(([service, those]) => `${String(those.length)} ${service}`).join(', ');
}

/** By name, in the order in which they are shown. */
export const deploymentLooks: Readonly<Record<string, Look>> = {
  redis: lookAtRedis,
  clock: lookAtClocks,
  index: lookAtIndex,
  connections: lookAtConnections,
  workers: lookAtWorkers,
  providers: lookAtProviders,
  sandbox: lookAtSandbox,
  email: lookAtEmail,
  versions: lookAtVersions,
};

const noWorkerAsked = warning('no worker runs that could be asked');

/** Everything that can be found out about a deployment from any of its machines. Never rejects. */
export async function examineDeployment(deployed: Deployed): Promise<Finding[]> {
  const looks = Object.entries(deploymentLooks).map(async ([name, look]): Promise<Finding> => {
    const found = await look(deployed).catch((error: unknown) => failed(error instanceof Error ? error.message : String(error)));
    return { name, ...(found ?? noWorkerAsked) };
  });
  return Promise.all(looks);
}
