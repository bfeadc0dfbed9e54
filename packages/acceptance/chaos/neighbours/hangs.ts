import { setTimeout as wait } from 'node:timers/promises';
import { eventually, type ServiceProcess, type System } from '@concierge/testing';
import type { ChaosRig } from '../rig.ts';

export type ServiceKind = 'gateways' | 'workers' | 'crons';

/** The preload that makes a process of any checkout hang on SIGUSR2. */
export const hangPreload = `--import=${new URL('hang-on-signal-main.ts', import.meta.url).href}`;

const BUSY_TIMEOUT_MS = 15_000;
/**
 * 15 s, as promised; what is still there then is found. Counted in ticks: they are late on a machine on which the
 * watchdog is, too.
 */
const ENDS_WITHIN_TICKS = 150;
const TICK_MS = 100;
/** One that has only just been started does not yet listen to the signal. */
const STARTING_MS = 3000;

/**
 * One process of each kind hangs, at the same time; each is started again when it has ended by itself, or has not in
 * time.
 */
export async function hangEach(rig: ChaosRig<System>, kinds: readonly ServiceKind[]): Promise<void> {
  await wait(STARTING_MS);
  await Promise.all(kinds.map(async (kind) => await hang(rig, await chooseOne(rig, kind))));
}

/** A worker with turns in its hands, where there is one. */
async function chooseOne(rig: ChaosRig<System>, kind: ServiceKind): Promise<ServiceProcess> {
  const processes = rig.target[kind];
  if (kind !== 'workers') return rig.random.pick(processes);
  const busy = async (): Promise<ServiceProcess | undefined> => {
    const callers = new Set((await rig.callsInFlight()).map(({ caller }) => caller));
    return processes.find(({ name }) => callers.has(name));
  };
  return await eventually(busy, { timeoutMs: BUSY_TIMEOUT_MS, everyMs: 50 }).catch(() => rig.random.pick(processes));
}

async function hang({ evidence }: ChaosRig<System>, process: ServiceProcess): Promise<void> {
  const beganMs = Date.now();
  await process.signal('SIGUSR2');
  for (let tick = 0; tick < ENDS_WITHIN_TICKS && process.alive; tick += 1) await wait(TICK_MS);
  const endedAfterMs = process.alive ? null : Date.now() - beganMs;
  evidence.fault({ atMs: beganMs, kind: 'hang', target: process.name, endedAfterMs });
  await process.kill();
  process.start();
}
