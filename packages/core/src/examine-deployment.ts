import type { Finding } from '@concierge/contract';
import { askSlots, assertNoEviction, readVersion, listSlots, type Log, type Version } from '@concierge/runtime';
import { canSendEmail, readClocks, readRunningProcesses, readWorkers, type ProcessFacts, type ReportedWorker } from '@concierge/turn';
import { describeShortage, readConnectionBudget } from './connection-budget.ts';
import type { Core } from './open-core.ts';

const CLOCK_TOLERANCE_MS = 2000;
/** What a worker without a sandbox means to agents. */
export const withoutSandbox = 'bash and exec answer with an error';

export type Found = Pick<Finding, 'status' | 'detail'>;

export const ok = (detail: string): Found => ({ status: 'ok', detail });
export const warning = (detail: string): Found => ({ status: 'warning', detail });
export const failed = (detail: string): Found => ({ status: 'failed', detail });

/** Nothing was found, as what would have to be asked is not there. */
export interface Unknown {
  readonly unknownBecause: string;
}

/** What a deployment is looked at by; each look says by itself what it cannot have. */
export interface Deployed {
  redis(): Promise<Core['redis']>;
  index(): Promise<Core['index']>;
  readonly hasPostgres: boolean;
  readonly log: Log;
}

/** What several looks need, read once for all of them. */
interface Examined extends Deployed {
  /** Whether Redis answers: that it does not is said by its own look, and by no other. */
  hasRedis(): Promise<boolean>;
  workers(): Promise<readonly ReportedWorker[]>;
  processes(): Promise<readonly ProcessFacts[]>;
}

type Look = (examined: Examined) => Promise<Found | Unknown>;

const noWorker: Unknown = { unknownBecause: 'no worker runs that could be asked' };
const noRedis: Unknown = { unknownBecause: 'Redis cannot be asked' };

function once<Read>(read: () => Promise<Read>): () => Promise<Read> {
  let reading: Promise<Read> | undefined;
  return async () => (reading ??= read());
}

function examine(deployed: Deployed): Examined {
  return {
    redis: async () => deployed.redis(),
    index: async () => deployed.index(),
    hasPostgres: deployed.hasPostgres,
    log: deployed.log,
    hasRedis: once(async () => {
      const pinged = async (): Promise<unknown> => (await deployed.redis()).ping();
      return pinged().then(
        () => true,
        () => false,
      );
    }),
    workers: once(async () => readWorkers(await deployed.redis())),
    processes: once(async () => readRunningProcesses(await deployed.redis())),
  };
}

function unlessSilent(look: Look): Look {
  return async (examined) => ((await examined.hasRedis()) ? look(examined) : noRedis);
}

async function lookAtRedis(deployed: Examined): Promise<Found> {
  const redis = await deployed.redis();
  await assertNoEviction(redis, deployed.log);
  const servers = await askSlots(redis, async (slot) => ({
    server: await slot.info('server'),
    persistence: await slot.info('persistence'),
  }));
  const version = /redis_version:(\S+)/u.exec(servers[0]?.server ?? '')?.[1] ?? 'of unknown version';
  const durable = servers.every(({ persistence }) => /aof_enabled:1/u.test(persistence));
  const masters = new Set(servers.map(({ server }) => /run_id:(\w+)/u.exec(server)?.[1])).size;
  const slots = listSlots(redis).length;
  const over = slots === 1 ? '' : `, ${String(slots)} slots on ${masters === 1 ? 'one master' : `${String(masters)} masters`}`;
  if (servers.length < slots)
    return failed(`Redis ${version}${over}: ${String(slots - servers.length)} slots are away, and their tenants wait`);
  return durable
    ? ok(`Redis ${version}, append-only file on${over}`)
    : warning(`Redis ${version}${over}, but its append-only file is off: a restart of it loses live streams`);
}

/** Signatures of providers carry times, and so do the files. */
async function lookAtClocks(examined: Examined): Promise<Found> {
  const { aheadMs } = await readClocks(await examined.redis());
  const running = await examined.processes();
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

async function lookAtIndex(deployed: Examined): Promise<Found> {
  await (await deployed.index()).check();
  return ok(deployed.hasPostgres ? 'PostgreSQL' : 'SQLite');
}

const noLimit = 'SQLite: there is no limit';

async function lookAtConnections(examined: Examined): Promise<Found> {
  const budget = await readConnectionBudget(await examined.index(), async () => examined.processes());
  if (budget === undefined) return ok(noLimit);
  const { processes, needed, available } = budget;
  if (needed > available) return warning(describeShortage(budget));
  return ok(`${String(processes)} processes may open ${String(needed)} of ${String(available)} connections to PostgreSQL`);
}

async function lookAtWorkers(examined: Examined): Promise<Found> {
  const reports = await examined.workers();
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

/** Each thing that was said, once, with how many workers say it where they differ. */
function collect(said: readonly string[]): string {
  const counts = [...Map.groupBy(said, (line) => line)];
  if (counts.length === 1) return counts[0]?.[0] ?? '';
  return counts.map(([line, those]) => `${line} (${String(those.length)} of ${String(said.length)} workers)`).join('; ');
}

async function lookAtProviders(examined: Examined): Promise<Found | Unknown> {
  const reports = (await examined.workers()).filter(({ model }) => model !== undefined);
  if (reports.length === 0) return noWorker;
  const said = reports.map(({ isDemo, model = '', unusableProviders = [] }) =>
    [isDemo ? 'the demo model answers' : `default ${model}`, ...unusableProviders].join('; '),
  );
  const found = reports.some(({ isDemo }) => isDemo) || new Set(said).size > 1 ? warning : ok;
  return found(collect(said));
}

async function lookAtSandbox(examined: Examined): Promise<Found | Unknown> {
  const sandboxes = (await examined.workers()).flatMap(({ sandbox }) => sandbox ?? []);
  if (sandboxes.length === 0) return noWorker;
  const said = sandboxes.map(({ isUsable, reason }) => (isUsable ? reason : `${reason}: ${withoutSandbox}`));
  const found = sandboxes.every(({ isUsable }) => isUsable) && new Set(said).size === 1 ? ok : warning;
  return found(collect(said));
}

/** Owners may ask for one when no staff member answers; a service without is whole all the same. */
async function lookAtEmail(examined: Examined): Promise<Found | Unknown> {
  const sendsEmail = canSendEmail(await examined.processes());
  if (sendsEmail === null) return { unknownBecause: 'no cron runs that could be asked' };
  return ok(sendsEmail ? 'owners get e-mails about unanswered handoffs' : 'SMTP_URL is not set for cron: no e-mail is sent to owners');
}

async function lookAtVersions(examined: Examined): Promise<Found> {
  const own = describeVersion(readVersion());
  const running = await examined.processes();
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

/** In the order in which they are shown. */
const looks: Readonly<Record<string, Look>> = {
  redis: lookAtRedis,
  clock: unlessSilent(lookAtClocks),
  index: lookAtIndex,
  connections: async (examined) => (examined.hasPostgres ? unlessSilent(lookAtConnections)(examined) : ok(noLimit)),
  workers: unlessSilent(lookAtWorkers),
  providers: unlessSilent(lookAtProviders),
  sandbox: unlessSilent(lookAtSandbox),
  email: unlessSilent(lookAtEmail),
  versions: unlessSilent(lookAtVersions),
};

/** The looks of one examination, by name: what several of them need is read once. Each may reject. */
export function listLooks(deployed: Deployed): [string, () => Promise<Found | Unknown>][] {
  const examined = examine(deployed);
  return Object.entries(looks).map(([name, look]) => [name, async () => look(examined)]);
}

/** Everything that can be found out about a deployment from any of its machines. Never rejects. */
export async function examineDeployment(deployed: Deployed): Promise<Finding[]> {
  const findings = listLooks(deployed).map(async ([name, look]): Promise<Finding> => {
    const found = await look().catch((error: unknown) => failed(error instanceof Error ? error.message : String(error)));
    return { name, ...('unknownBecause' in found ? warning(found.unknownBecause) : found) };
  });
  return Promise.all(findings);
}
