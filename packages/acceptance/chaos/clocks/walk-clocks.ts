import { eventually, type ServiceProcess, type System } from '@concierge/testing';
import type { ChaosRig } from '../rig.ts';
import type { SteppedClocks } from './stepped-clocks.ts';

export interface ClockStep {
  /** A process by its name, or `redis`. */
  readonly clock: string;
  readonly offsetSeconds: number;
}

/** Half a minute and an hour, either way, of each kind of process in turn. */
export const allClockSteps: readonly ClockStep[] = ['worker-0', 'gateway-0', 'cron-0', 'redis'].flatMap((clock) =>
  [30, -30, 3600, -3600].map((offsetSeconds) => ({ clock, offsetSeconds })),
);

const BUSY_TIMEOUT_MS = 30_000;
/** Longer than the auditor takes for slow, so that it sees how slow. */
const RECOVERY_TIMEOUT_MS = 60_000;
const STEADY_MS = 3000;

/**
 * Steps one clock after the other and back; each time a worker is killed and another one has to take over its turns:
 * while the clock of another process is wrong, and right before Redis' clock is stepped, so that no worker renews by
 * the new time what was taken by the old one.
 */
export async function walkClocks(rig: ChaosRig<System>, clocks: SteppedClocks, steps: readonly ClockStep[]): Promise<void> {
  const step = async (clock: string, offsetSeconds: number): Promise<void> => {
    rig.evidence.fault({ atMs: Date.now(), kind: 'clock', target: clock, offsetSeconds });
    await clocks.step(clock, offsetSeconds);
  };
  for (const { clock, offsetSeconds } of steps) {
    if (clock === 'redis') {
      const isTakenUp = await killBusyWorker(rig);
      await step(clock, offsetSeconds);
      await isTakenUp();
    } else {
      await step(clock, offsetSeconds);
      await rig.quiet(STEADY_MS);
      await (
        await killBusyWorker(rig)
      )();
    }
    await step(clock, 0);
  }
}

/**
 * Sends kill -9 to a worker in the middle of turns. The returned function waits until all of them have been taken over,
 * or take too long.
 */
async function killBusyWorker(rig: ChaosRig<System>): Promise<() => Promise<void>> {
  const worker = await eventually(async () => await busiestWorker(rig), { timeoutMs: BUSY_TIMEOUT_MS, everyMs: 50 }).catch(() => undefined);
  if (worker === undefined) return async () => undefined;
  const held = (await rig.callsInFlight()).filter(({ caller }) => caller === worker.name);
  const killedAtMs = Date.now();
  rig.evidence.fault({ atMs: killedAtMs, kind: 'kill', target: worker.name });
  await worker.kill();
  worker.start();
  const isTakenUp = async (): Promise<boolean> => {
    const ledger = await rig.evidence.readLedger();
    return held.every(({ marker, number }) =>
      ledger.some((line) => line.marker === marker && line.number > number && line.atMs > killedAtMs),
    );
  };
  return async () => {
    await eventually(isTakenUp, { timeoutMs: RECOVERY_TIMEOUT_MS, everyMs: 100 }).catch(() => undefined);
  };
}

/** Returns the worker with the most calls in flight; never the first, whose clock may be wrong. */
async function busiestWorker(rig: ChaosRig<System>): Promise<ServiceProcess | undefined> {
  const calls = Map.groupBy(await rig.callsInFlight(), ({ caller = '' }) => caller);
  const others = rig.target.workers.slice(1).map((worker) => ({ worker, held: calls.get(worker.name)?.length ?? 0 }));
  return others.filter(({ held }) => held > 0).toSorted((left, right) => right.held - left.held)[0]?.worker;
}
