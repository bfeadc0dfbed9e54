import type { AuditReport } from './auditor.ts';
import type { FaultPlan } from './faults.ts';
import { walkFailPoints, type FailPoint } from './failpoints.ts';
import type { LoadSize } from './load-plan.ts';
import { NaiveSystem } from './naive.ts';
import { ChaosRig, startSystem } from './rig.ts';
import { killDraining, rollOver } from './rolling-restart.ts';

export interface ChaosOptions {
  readonly seed: number;
  readonly load: LoadSize;
  readonly faults: FaultPlan;
  readonly gateways?: number;
  readonly workers?: number;
  readonly deadlineMs: number;
}

/** What a scenario found; `explain` keeps what it left and says where. Call it, or not, before the rig is disposed. */
export type Verdict = (report: AuditReport, rig: ChaosRig) => Promise<void>;

/** Kills, freezes, a Redis that dies and one that forgets, all under load. */
export async function runChaos(options: ChaosOptions, verdict: Verdict): Promise<void> {
  const { seed, load, faults, gateways, workers, deadlineMs } = options;
  const size = { ...(gateways !== undefined && { gateways }), ...(workers !== undefined && { workers }) };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, size) });
  await rig.run({ meanwhile: async () => await rig.strike(faults), wholeLoad: true, deadlineMs });
  await verdict(await rig.finish(), rig);
}

const kill = (name: string, nth = 1): FailPoint => ({ name, action: 'kill', nth });
const stop = (name: string, nth = 1): FailPoint => ({ name, action: 'stop', nth });

/** Every named fail point of a worker; frozen where a writer could do harm when it comes back. Each list is one process's way. */
export const workerFailPoints: readonly (readonly FailPoint[])[] = [
  [
    kill('turn.after-lease', 2),
    kill('model.after-reply'),
    kill('session.after-temp'),
    kill('turn.after-done'),
    stop('session.after-temp', 2),
  ],
  [
    kill('stream.before-append', 9),
    kill('tool.after-intent'),
    kill('session.after-link'),
    kill('session.after-check'),
    stop('session.after-check', 2),
  ],
  [kill('tool.before-result'), kill('session.after-publish'), kill('turn.after-save'), stop('turn.after-save', 2)],
];
export const gatewayFailPoints: readonly (readonly FailPoint[])[] = [
  [kill('inbox.after-file', 2), kill('accept.after-lane', 2)],
  [kill('accept.after-inbox', 2)],
];

/** Each fail point once, the system under load all the while. */
export async function runFailPoints(seed: number, verdict: Verdict): Promise<void> {
  const load = { turns: 600, conversations: 12, tenants: 3, overMs: 90_000, burst: 2 };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl) });
  const { workers, gateways } = rig.target;
  const ways = [
    ...workers.map((process, at) => [process, workerFailPoints[at] ?? []] as const),
    ...gateways.map((process, at) => [process, gatewayFailPoints[at] ?? []] as const),
  ];
  await rig.run({ meanwhile: async () => await walkFailPoints(rig, new Map(ways)), wholeLoad: false, deadlineMs: 120_000 });
  await verdict(await rig.finish(), rig);
}

/** SIGTERM for one process after the other, with less grace than some turns need; one is killed while it drains. */
export async function runRollingRestart(seed: number, verdict: Verdict): Promise<void> {
  const load = { turns: 400, conversations: 12, tenants: 3, overMs: 60_000, burst: 3, slow: 0.15 };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await startSystem(modelUrl, { graceS: 2 }) });
  const meanwhile = async (): Promise<void> => {
    for (const worker of rig.target.workers.slice(0, 1)) await killDraining(rig, worker);
    await rollOver(rig);
  };
  await rig.run({ meanwhile, wholeLoad: false, deadlineMs: 90_000 });
  await verdict(await rig.finish(), rig);
}

/** The naive system under the same kind of load: it is to be found out. */
export async function runNaive(seed: number, verdict: Verdict): Promise<void> {
  const load = { turns: 168, conversations: 14, tenants: 2, overMs: 24_000, burst: 4 };
  await using rig = await ChaosRig.start({ seed, load, start: async (modelUrl) => await NaiveSystem.start(modelUrl) });
  const { workers, gateways } = rig.target;
  // Between save and end, and between queue and answer: where a naive turn is doubled.
  const points = new Map([
    ...workers.slice(1).map((process) => [process, [kill('naive.after-save', 2)]] as const),
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
    deadlineMs: 30_000,
  });
  // What it has lost would be waited for in vain.
  await verdict(await rig.finish({ reread: false }), rig);
}

/** FLUSHALL while turns are acknowledged and nobody takes them. */
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
