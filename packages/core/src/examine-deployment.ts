import { hostname } from 'node:os';
import type { Finding, FindingCode } from '@concierge/contract';
import { askSlots, assertNoEviction, readVersion, listSlots, type Log, type Version } from '@concierge/runtime';
import { canSendEmail, readClocks, readRunningProcesses, readWorkers, type ProcessFacts, type ReportedWorker } from '@concierge/turn';
import { describeShortage, readConnectionBudget } from './connection-budget.ts';
import type { Core } from './open-core.ts';

const CLOCK_TOLERANCE_MS = 2000;
/** What a worker without a sandbox means to agents. */
export const withoutSandbox = 'bash and exec answer with an error';

interface Sentence {
  readonly code: FindingCode;
  readonly params: Readonly<Record<string, string>>;
}

/** `said`: the same by codes, where all of it has one. */
export interface Found extends Pick<Finding, 'status' | 'detail'> {
  readonly said?: readonly Sentence[];
}

type Find = (detail: string, said?: readonly Sentence[]) => Found;

const find =
  (status: Found['status']): Find =>
  (detail, said) => ({ status, detail, ...(said !== undefined && { said }) });
export const ok = find('ok');
export const warning = find('warning');
export const failed = find('failed');

function say(code: FindingCode, params: Readonly<Record<string, string | number>> = {}): Sentence {
  return { code, params: Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)])) };
}

/** Nothing was found, as what would have to be asked is not there. */
export interface Unknown {
  readonly unknownBecause: string;
  readonly code: FindingCode;
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

const noWorker: Unknown = { unknownBecause: 'no worker runs that could be asked', code: 'no_worker_to_ask' };
const noRedis: Unknown = { unknownBecause: 'Redis cannot be asked', code: 'no_redis_to_ask' };
const noCron: Unknown = { unknownBecause: 'no cron runs that could be asked', code: 'no_cron_to_ask' };

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
  const said = [say('redis_version', { version }), ...(slots === 1 ? [] : [say('redis_slots', { slots, masters })])];
  const away = slots - servers.length;
  if (away > 0)
    return failed(`Redis ${version}${over}: ${String(away)} slots are away, and their tenants wait`, [
      ...said,
      say('redis_slots_away', { count: away }),
    ]);
  return durable
    ? ok(`Redis ${version}, append-only file on${over}`, [...said, say('redis_kept')])
    : warning(`Redis ${version}${over}, but its append-only file is off: a restart of it loses live streams`, [
        ...said,
        say('redis_not_kept'),
      ]);
}

/** Signatures of providers carry times, and so do the files. */
async function lookAtClocks(examined: Examined): Promise<Found> {
  const { aheadMs } = await readClocks(await examined.redis());
  const running = await examined.processes();
  const clocks = [
    { name: 'this machine', place: hostname(), aheadMs },
    ...running.map(({ service, host, clockAheadMs }) => ({
      name: `${service} on ${host}`,
      place: `${service}, ${host}`,
      aheadMs: clockAheadMs,
    })),
  ];
  const wrong = clocks.filter((clock) => Math.abs(clock.aheadMs) > CLOCK_TOLERANCE_MS);
  const within = CLOCK_TOLERANCE_MS / 1000;
  if (wrong.length === 0) return ok(`within ${String(within)} s of Redis’ clock`, [say('clocks_agree', { seconds: within })]);
  const found = wrong.map(({ name, place, aheadMs: byMs }) => {
    const seconds = (Math.abs(byMs) / 1000).toFixed(1);
    const text = `${name} is ${seconds} s ${byMs > 0 ? 'ahead of' : 'behind'} Redis’ clock`;
    return { text, said: say(byMs > 0 ? 'clock_ahead' : 'clock_behind', { place, seconds }) };
  });
  const once = [...new Map(found.map((each) => [each.text, each])).values()];
  return warning(
    once.map(({ text }) => text).join('; '),
    once.map(({ said }) => said),
  );
}

async function lookAtIndex(deployed: Examined): Promise<Found> {
  await (await deployed.index()).check();
  const database = deployed.hasPostgres ? 'PostgreSQL' : 'SQLite';
  return ok(database, [say('index_in', { database })]);
}

const noLimit = (): Found => ok('SQLite: there is no limit', [say('connections_unlimited')]);

async function lookAtConnections(examined: Examined): Promise<Found> {
  const budget = await readConnectionBudget(await examined.index(), async () => examined.processes());
  if (budget === undefined) return noLimit();
  const { processes, needed, available } = budget;
  if (needed > available) return warning(describeShortage(budget), [say('connections_short', { ...budget })]);
  const enough = `${String(processes)} processes may open ${String(needed)} of ${String(available)} connections to PostgreSQL`;
  return ok(enough, [say('connections_enough', { processes, needed, available })]);
}

async function lookAtWorkers(examined: Examined): Promise<Found> {
  const reports = await examined.workers();
  if (reports.length === 0) return failed('none is alive: accepted turns wait', [say('workers_none'), say('turns_wait')]);
  const leaving = reports.filter((report) => report.draining).length;
  const drained = reports.filter((report) => !report.draining && report.isDrained).length;
  const alive = `${String(reports.length)} alive`;
  const said = [
    say('workers_alive', { count: reports.length }),
    ...(leaving === 0 ? [] : [say('workers_stopping', { count: leaving })]),
    ...(drained === 0 ? [] : [say('workers_drained', { count: drained })]),
  ];
  const waiting = [...said, say('turns_wait')];
  if (leaving === reports.length) return failed(`${alive}, all of them stopping: accepted turns wait`, waiting);
  const parts = [
    alive,
    ...(leaving === 0 ? [] : [`${String(leaving)} of them stopping`]),
    ...(drained === 0 ? [] : [`${String(drained)} drained by an operator`]),
  ].join(', ');
  if (leaving + drained === reports.length) return failed(`${parts}: accepted turns wait`, waiting);
  return (drained === 0 ? ok : warning)(parts, said);
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
  return found(collect(said), new Set(said).size === 1 ? sayModel(reports[0]) : undefined);
}

/** Undefined where a provider cannot be used: why not is in the words of the worker. */
function sayModel({ isDemo = false, model = '', unusableProviders = [] }: Partial<ReportedWorker> = {}): readonly Sentence[] | undefined {
  if (unusableProviders.length > 0) return undefined;
  return [isDemo ? say('demo_answers') : say('default_model', { model })];
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
  if (sendsEmail === null) return noCron;
  return sendsEmail
    ? ok('owners get e-mails about unanswered handoffs', [say('email_sent')])
    : ok('SMTP_URL is not set for cron: no e-mail is sent to owners', [say('email_off')]);
}

async function lookAtVersions(examined: Examined): Promise<Found> {
  const own = describeVersion(readVersion());
  const running = await examined.processes();
  const byVersion = Map.groupBy(running, describeVersion);
  const parts = Array.from(byVersion, ([version, those]) => `${version}: ${countServices(those)}`);
  if (byVersion.size === 0) return ok(`${own}: no process announces itself`, [say('versions_alone', { own })]);
  if (byVersion.size === 1 && byVersion.has(own)) return ok(parts.join('; '), [say('versions_same', { list: parts.join('; ') })]);
  const asking = byVersion.has(own) ? [] : [`${own}: who asks`];
  const list = [...parts, ...asking].join('; ');
  return warning(`they differ, as during an upgrade: ${list}`, [say('versions_differ', { list })]);
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
  connections: async (examined) => (examined.hasPostgres ? unlessSilent(lookAtConnections)(examined) : noLimit()),
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
    const { said, ...rest } = 'unknownBecause' in found ? warning(found.unknownBecause, [say(found.code)]) : found;
    return { name, ...rest, ...(said !== undefined && { said: [...said] }) };
  });
  return Promise.all(findings);
}
