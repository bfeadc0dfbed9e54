import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually, type ServiceProcess } from '@concierge/testing';
import { isFenced } from './audit/audit-history.ts';
import type { ChaosRig } from './rig.ts';

/** A place at which a process breaks itself, and what it does there (packages/runtime, failpoint.ts). */
export interface FailPoint {
  readonly name: string;
  readonly action: 'kill' | 'stop';
  /** Passes before it strikes, counted from 1. */
  readonly nth?: number;
}

const REACH_TIMEOUT_MS = 240_000;
/** Longer than a lease, the look of the reconciler after it, and what a busy machine adds to both. */
const FROZEN_MS = 15_000;
/** A worker that goes on has found by then, on any machine, whether its session has passed to another. */
const FENCED_TIMEOUT_MS = 30_000;

/**
 * Sends every chain of fail points through one process each: it is started with the next one as soon as the last one
 * has struck.
 */
export async function walkFailPoints(rig: ChaosRig, chains: ReadonlyMap<ServiceProcess, readonly FailPoint[]>): Promise<void> {
  await Promise.all(
    [...chains].map(async ([process, points]) => {
      for (const point of points) await walkOne(rig, process, point);
      await process.kill();
      process.start();
    }),
  );
}

async function walkOne({ evidence, target }: ChaosRig, process: ServiceProcess, { name, action, nth = 1 }: FailPoint): Promise<void> {
  await process.kill();
  const failpoint = `${name}:${action}:${String(nth)}`;
  process.start({ FAILPOINT: failpoint });
  const struck = action === 'kill' ? (): boolean => process.endedBy === 'SIGKILL' : async (): Promise<boolean> => await isStopped(process);
  const reached = await eventually(struck, { timeoutMs: REACH_TIMEOUT_MS, everyMs: 25 }).catch(() => false);
  evidence.fault({ atMs: Date.now(), kind: 'failpoint', target: process.name, failpoint, reached });
  if (action === 'kill' || !reached) return;
  await wait(FROZEN_MS);
  const logFile = join(target.logsFolder, `${process.name}.log`);
  const before = await countFenced(logFile);
  await process.signal('SIGCONT');
  await wait(1500);
  if (!target.workers.includes(process)) return;
  // It is to find out that its session has passed to another before it is killed for the next point.
  await eventually(async () => (await countFenced(logFile)) > before, { timeoutMs: FENCED_TIMEOUT_MS, everyMs: 250 }).catch(
    () => undefined,
  );
}

async function countFenced(logFile: string): Promise<number> {
  return (await readFile(logFile, 'utf8')).split('\n').filter((line) => isFenced(line)).length;
}

/** Linux documents state `T` in proc(5). */
async function isStopped({ pid }: ServiceProcess): Promise<boolean> {
  const stat = await readFile(`/proc/${String(pid)}/stat`, 'utf8').catch(() => '');
  return /\) T /u.test(stat);
}
