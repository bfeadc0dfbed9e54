import { fileURLToPath } from 'node:url';
import { startPostgres } from '@concierge/testing';
import type { AuditReport } from './audit/auditor.ts';
import { walkFailPoints, type FailPoint } from './failpoints.ts';
import type { FaultPlan } from './faults.ts';
import { findFakeTime, SteppedClocks, walkClocks, type ClockStep } from './clocks/stepped-clocks.ts';
import type { LoadSize } from './load/load-plan.ts';
import { NaiveSystem } from './naive.ts';
import { ChaosRig, startSystem } from './rig.ts';
import {
  hangEach,
  hangPreload,
  type ServiceKind,
  runFlood,
  type FloodSize,
  runPoisonRound,
  type PoisonRound,
} from './neighbours/neighbours.ts';
import { probe, probedRequests } from './redis/cut-connections.ts';
import { RedisFaults } from './redis/redis-faults.ts';
import { runStreamRound, type StreamRound } from './redis/lost-streams.ts';
import { NetworkDisk } from './disk/network-disk.ts';
import { cutPower, PowerDisk } from './disk/power-disk.ts';
import { fillDisk, SmallDisk } from './disk/small-disk.ts';
import { killDraining, rollOver, rollTo } from './rolling-restart.ts';

export interface ChaosOptions {
  readonly seed: number;
  readonly tree?: string | undefined;
  readonly load: LoadSize;
  readonly faults: FaultPlan;
  readonly gateways?: number;
  readonly workers?: number;
  readonly deadlineMs: number;
}

/** What is repeated by naming it again, and whose services are run: this checkout's unless `tree` names another one. */
export interface Place {
  readonly seed: number;
  readonly tree?: string | undefined;
}

/**
 * What a scenario found; `explain` keeps what it left and prints where. Call it, or not, before the rig is disposed.
 */
export type Verdict = (report: AuditReport, rig: Pick<ChaosRig, 'explain'>) => Promise<void>;

/** Kills, freezes, a Redis that dies and one that forgets, all under load. */
export async function runChaos(options: ChaosOptions, verdict: Verdict): Promise<void> {
  const { seed, tree, load, faults, gateways, workers, deadlineMs } = options;
  const size = { ...(gateways !== undefined && { gateways }), ...(workers !== undefined && { workers }) };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, { ...size, tree }) });
  await rig.run({ meanwhile: async () => await rig.strike(faults), wholeLoad: true, deadlineMs });
  await verdict(await rig.finish(), rig);
}

/**
 * Beyond what a load takes: readers that are ended by it are findings, and a busy machine needs many times as long.
 */
const SPARE_MS = 480_000;

/** The load of scenarios that send their own questions. */
const noLoad: LoadSize = { turns: 0, conversations: 1, tenants: 3, overMs: 0, burst: 1 };
const noSandbox = { SANDBOX: 'off' };

const kill = (name: string, nth = 1): FailPoint => ({ name, action: 'kill', nth });
const stop = (name: string, nth = 1): FailPoint => ({ name, action: 'stop', nth });

/**
 * Every named fail point of a worker; frozen where a writer could do harm when it comes back. Each list is one
 * process's way. They freeze at different times: another worker must be there to take the lease.
 */
export const workerFailPoints: readonly (readonly FailPoint[])[] = [
  [
    stop('session.after-temp', 2),
    kill('turn.after-lease', 2),
    kill('model.after-reply'),
    kill('session.after-temp'),
    stop('session.after-log', 2),
    kill('session.after-log'),
    kill('turn.after-done'),
  ],
  [
    kill('stream.before-append', 9),
    kill('tool.after-intent'),
    stop('session.after-check', 2),
    kill('session.after-link'),
    kill('session.after-check'),
  ],
  [kill('tool.before-result'), kill('session.after-publish'), kill('turn.after-save'), stop('turn.after-save', 2)],
];
export const gatewayFailPoints: readonly (readonly FailPoint[])[] = [
  [kill('inbox.after-file'), kill('log.after-append', 2), kill('accept.after-lane', 2), stop('log.after-append', 3)],
  [kill('accept.after-inbox', 2), kill('log.after-file')],
];

/** Each fail point once, the system under load all the while. */
export async function runFailPoints({ seed, tree }: Place, verdict: Verdict): Promise<void> {
  // More than is asked on a quiet machine: the load goes on until every point has been reached.
  const load = { turns: 6000, conversations: 12, tenants: 3, overMs: 900_000, burst: 2 };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, { tree }) });
  const { workers, gateways } = rig.target;
  const ways = [
    ...workers.map((process, at) => [process, workerFailPoints[at] ?? []] as const),
    ...gateways.map((process, at) => [process, gatewayFailPoints[at] ?? []] as const),
  ];
  await rig.run({ meanwhile: async () => await walkFailPoints(rig, new Map(ways)), wholeLoad: false, deadlineMs: 1_000_000 });
  await verdict(await rig.finish(), rig);
}

/** SIGTERM for one process after the other, with less grace than some turns need; one is killed while it drains. */
export async function runRollingRestart({ seed, tree }: Place, verdict: Verdict): Promise<void> {
  const load = { turns: 5000, conversations: 12, tenants: 3, overMs: 750_000, burst: 3, slow: 0.15 };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, { tree, graceS: 2 }) });
  const meanwhile = async (): Promise<void> => {
    for (const worker of rig.target.workers.slice(0, 1)) await killDraining(rig, worker);
    await rollOver(rig);
  };
  await rig.run({ meanwhile, wholeLoad: false, deadlineMs: 900_000 });
  await verdict(await rig.finish(), rig);
}

export interface TwoVersions extends Place {
  /** The checkout of the earlier version. */
  readonly tree: string;
  /** Where the index is; SQLite when omitted. */
  readonly database?: 'postgres';
}

/**
 * Services of an earlier version are replaced by this one's under load, then this one's by the earlier, then again;
 * half of the way both are struck side by side.
 */
export async function runTwoVersions({ seed, tree, database }: TwoVersions, verdict: Verdict): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const index = database === undefined ? {} : { databaseUrl: stack.use(await startPostgres()).url };
  const load = { turns: 4000, conversations: 12, tenants: 3, overMs: 900_000, burst: 3, slow: 0.15 };
  const size = { tree, crons: 1, graceS: 5, env: noSandbox, ...index };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, size) });
  const strike = async (): Promise<void> =>
    await rig.strike({ kills: 4, stops: 1, stopMs: FROZEN_MS, redisKills: 1, flushes: 1, overMs: SIDE_BY_SIDE_MS });
  const meanwhile = async (): Promise<void> => {
    for (const next of [undefined, tree, undefined]) await rollTo(rig, next, strike);
  };
  await rig.run({ meanwhile, wholeLoad: false, deadlineMs: 1_200_000 });
  await verdict(await rig.finish(), rig);
}

/** Longer than a lease. */
const FROZEN_MS = 11_000;
const SIDE_BY_SIDE_MS = 30_000;

/** Runs the naive system under the same kind of load: the auditor must find its faults. */
export async function runNaive(seed: number, verdict: Verdict): Promise<void> {
  const load = { turns: 168, conversations: 14, tenants: 2, overMs: 24_000, burst: 4 };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await NaiveSystem.start(modelUrl) });
  const { workers, gateways } = rig.target;
  // A naive turn is doubled between save and end, and between queue and answer. Several times: a neighbour in the same
  // session may overwrite what was saved, and a job whose lock has ended before, on a busy machine, is not run again.
  const doubling: readonly FailPoint[] = Array.from({ length: 3 }, () => kill('naive.after-save', 2));
  const points = new Map([
    ...workers.slice(1).map((process) => [process, doubling] as const),
    ...gateways.map((process) => [process, [kill('naive.after-add', 2)]] as const),
  ]);
  await rig.run({
    meanwhile: async () => {
      await forgetQueued(rig);
      await walkFailPoints(rig, points);
      // Longer than the lock of a job: it is run by another, and then by the one that was frozen, too.
      await rig.strike({ kills: 2, stops: 1, stopMs: 7000, redisKills: 0, flushes: 0, overMs: 3000 });
    },
    wholeLoad: true,
    // What a killed worker held is run again only when its lock has ended and been looked for.
    deadlineMs: 60_000,
  });
  // A wait for lost turns would never end.
  await verdict(await rig.finish({ reread: false }), rig);
}

/** FLUSHALL while turns are acknowledged and no worker takes them. */
async function forgetQueued(rig: ChaosRig): Promise<void> {
  const { workers } = rig.target;
  await rig.quiet(2000);
  for (const worker of workers) {
    rig.evidence.fault({ atMs: Date.now(), kind: 'kill', target: worker.name });
    await worker.kill();
  }
  await rig.quiet(2500);
  await rig.strike({ kills: 0, stops: 0, stopMs: 0, redisKills: 0, flushes: 1, overMs: 0 });
  for (const worker of workers) worker.start();
}

export interface LostStreams extends Place {
  readonly rounds: readonly StreamRound[];
}

/**
 * Redis is full, loses its last second or forgets everything while turns are read in every way in which they can be
 * read.
 */
export async function runLostStreams({ seed, tree, rounds }: LostStreams, verdict: Verdict): Promise<void> {
  await using rig = await ChaosRig.start({
    seed,
    load: noLoad,
    start: async (modelUrl) => await startSystem(modelUrl, { tree, workers: 2, env: noSandbox }),
  });
  for (const round of rig.random.shuffled(rounds)) await runStreamRound(rig, round);
  await verdict(await rig.finish(), rig);
}

export interface WrongClocks extends Place {
  readonly steps: readonly ClockStep[];
}

/**
 * Steps single clocks and kills a worker each time; then readers resume turns that began and ended by different clocks.
 */
export async function runWrongClocks({ seed, tree, steps }: WrongClocks, verdict: Verdict): Promise<void> {
  const library = findFakeTime();
  if (library === undefined) throw new Error('wrong clocks need libfaketime (apt install faketime)');
  using clocks = new SteppedClocks(library);
  const envFor = (name: string): Record<string, string> => clocks.buildEnvironment(name);
  const overMs = steps.length * SECONDS_PER_STEP * 1000;
  const load = { turns: steps.length * TURNS_PER_STEP, conversations: 12, tenants: 3, overMs, burst: 2, slow: 0.3 };
  const size = { tree, workers: 3, crons: 1, env: noSandbox, envFor };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, size) });
  const meanwhile = async (): Promise<void> => await walkClocks(rig, clocks, rig.random.shuffled(steps));
  await rig.run({ meanwhile, wholeLoad: false, deadlineMs: overMs * 2 + SPARE_MS });
  await Promise.all(rig.target.workers.map(async ({ name }) => await clocks.step(name, -3600)));
  await runStreamRound(rig, { fault: 'expired', turns: 8 });
  await verdict(await rig.finish(), rig);
}

/** More than a step takes: the load ends with the last one. */
const SECONDS_PER_STEP = 60;
const TURNS_PER_STEP = 130;

export interface PoisonBesideInnocents extends Place {
  readonly rounds: readonly PoisonRound[];
}

/** A turn that kills every worker that runs it, beside turns that have done nothing. */
export async function runPoison({ seed, tree, rounds }: PoisonBesideInnocents, verdict: Verdict): Promise<void> {
  const size = { tree, workers: 2, env: noSandbox };
  await using rig = await ChaosRig.start({ seed, load: noLoad, start: async (modelUrl) => await startSystem(modelUrl, size) });
  for (const round of rounds) await runPoisonRound(rig, round);
  await verdict(await rig.finish(), rig);
}

export interface Hangs extends Place {
  /** One process of each kind hangs so often, all kinds at the same time. */
  readonly rounds: number;
}

const hangingKinds: readonly ServiceKind[] = ['gateways', 'workers', 'crons'];

/** Event loops that never turn again, under load. */
export async function runHangs({ seed, tree, rounds }: Hangs, verdict: Verdict): Promise<void> {
  const load = { turns: 120 * rounds, conversations: 12, tenants: 3, overMs: 30_000 * rounds, burst: 2, slow: 0.3 };
  const size = { tree, workers: 2, crons: 1, env: { ...noSandbox, NODE_OPTIONS: hangPreload } };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, size) });
  const meanwhile = async (): Promise<void> => {
    for (let round = 0; round < rounds; round += 1) await hangEach(rig, hangingKinds);
  };
  await rig.run({ meanwhile, wholeLoad: false, deadlineMs: 60_000 * rounds + SPARE_MS });
  await verdict(await rig.finish(), rig);
}

export interface CutConnections extends Place {
  /** Every connection to Redis is killed so often. */
  readonly cuts: number;
}

/** Connections to Redis die under all kinds of requests: they are answered, or put off with 503 and `Retry-After`. */
export async function runCutConnections({ seed, tree, cuts }: CutConnections, verdict: Verdict): Promise<void> {
  const overMs = cuts * CUT_EVERY_MS;
  const load = { turns: Math.round(overMs / 100), conversations: 8, tenants: 1, overMs, burst: 2 };
  const size = { tree, workers: 2, env: noSandbox };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, size) });
  const [keys] = rig.tenants.values();
  if (keys === undefined) throw new Error('no tenant');
  const request = { marker: 'mk-first-0-0000', kind: 'say', chunks: 4, delayMs: 10 } as const;
  await rig.load.askOnce({ request, tenantId: keys.tenantId, form: 'events' }, AbortSignal.timeout(FIRST_TURN_TIMEOUT_MS));
  const [first] = await rig.evidence.readAcknowledged();
  const session = { id: first?.sessionId ?? '', turnId: first?.turnId ?? '', sender: `contact ${request.marker}` };
  const isOver = new AbortController();
  const { evidence, target } = rig;
  const requests = probedRequests({ adminKey: keys.admin, csKey: keys.cs, session });
  const probing = requests.map(async (asked) => {
    await probe({ ...asked, gateways: target.gatewayUrls, evidence }, isOver.signal);
  });
  const meanwhile = async (): Promise<void> =>
    await new RedisFaults(target.redis, evidence).killConnections({ times: cuts, random: rig.random.fork() });
  await rig.run({ meanwhile, wholeLoad: true, deadlineMs: overMs * 2 + SPARE_MS });
  isOver.abort();
  await Promise.all(probing);
  await verdict(await rig.finish(), rig);
}

const CUT_EVERY_MS = 600;
const FIRST_TURN_TIMEOUT_MS = 180_000;

/** A data directory without a byte left, for a while. */
export async function runFullDisk({ seed, tree }: Place, verdict: Verdict): Promise<void> {
  await using disk = await SmallDisk.mount(DISK_MEGABYTES);
  const { dataDir, logsFolder } = disk;
  const load = { turns: 60, conversations: 6, tenants: 1, overMs: 15_000, burst: 2 };
  const size = { tree, workers: 2, env: noSandbox, dataDir, logsFolder };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, size) });
  const meanwhile = async (): Promise<void> => {
    await rig.quiet(BEFORE_FULL_MS);
    await fillDisk(rig, disk);
  };
  await rig.run({ meanwhile, wholeLoad: true, deadlineMs: SPARE_MS });
  await verdict(await rig.finish(), rig);
}

const DISK_MEGABYTES = 48;
const BEFORE_FULL_MS = 4000;

export interface PowerCuts extends Place {
  readonly cuts: number;
  /** Nothing is synced, whatever the services are told: something must be found. */
  readonly forgets?: boolean;
}

/** By its path its tenants are made by another process: this one may have nothing open on the disk. */
const ownTree = fileURLToPath(new URL('../../../', import.meta.url));

/** The power goes under load, again and again: what was not synced is gone. Every second time Redis loses a second. */
export async function runPowerCuts({ seed, tree = ownTree, cuts, forgets = false }: PowerCuts, verdict: Verdict): Promise<void> {
  await using disk = await PowerDisk.mount();
  const { dataDir, logsFolder } = disk;
  const load = { turns: TURNS_PER_CUT * cuts, conversations: 16, tenants: 2, overMs: CUT_AFTER_MS.most * cuts, burst: 2 };
  const env = { ...noSandbox, ...disk.buildEnvironment({ forgets }) };
  const size = { tree, workers: 2, env, dataDir, logsFolder };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, size) });
  await disk.sync();
  const meanwhile = async (): Promise<void> => {
    for (let cut = 0; cut < cuts; cut += 1) {
      await rig.quiet(rig.random.between(CUT_AFTER_MS.least, CUT_AFTER_MS.most));
      await cutPower(rig, disk, { alsoRedis: cut % 2 === 1 });
    }
  };
  await rig.run({ meanwhile, wholeLoad: false, deadlineMs: cuts * 60_000 + SPARE_MS });
  await verdict(await rig.finish(), rig);
}

const CUT_AFTER_MS = { least: 4000, most: 18_000 };
const TURNS_PER_CUT = 150;

export interface TwoMachines extends Place {
  readonly faults: FaultPlan;
}

/** Gateways and workers on two machines over a network file system with caches; the index in PostgreSQL. */
export async function runTwoMachines({ seed, tree, faults }: TwoMachines, verdict: Verdict): Promise<void> {
  await using disk = await NetworkDisk.mount();
  await using postgres = await startPostgres();
  const overMs = faults.overMs;
  const load = { turns: Math.round(overMs / MS_PER_TURN), conversations: 16, tenants: 3, overMs, burst: 3 };
  const place = { dataDir: disk.dataDirOn(0), logsFolder: disk.logsFolder, databaseUrl: postgres.url };
  const envFor = (name: string): Record<string, string> => disk.buildEnvironment(name);
  const size = { tree, workers: 4, env: noSandbox, envFor, ...place };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, size) });
  await rig.run({ meanwhile: async () => await rig.strike(faults), wholeLoad: true, deadlineMs: overMs * 3 + SPARE_MS });
  await verdict(await rig.finish(), rig);
}

const MS_PER_TURN = 150;

export interface Flood extends Place, FloodSize {}

/** One tenant floods ten quiet ones. */
export async function runFloodBeside({ seed, tree, ...flood }: Flood, verdict: Verdict): Promise<void> {
  const load = { ...noLoad, tenants: 11 };
  const size = { tree, workers: 2, env: noSandbox };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, size) });
  await runFlood(rig, flood);
  await verdict(await rig.finish({ reread: false }), rig);
}
