import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually, type ServiceProcess } from '@concierge/testing';
import type { ChaosRig, Target } from './rig.ts';

const READY_TIMEOUT_MS = 90_000;
const killInDrain = 'worker.draining:kill';

/** SIGTERM for one process after the other, each started again and ready before the next one goes. */
export async function rollOver({ target, evidence }: ChaosRig): Promise<void> {
  for (const process of [...target.workers, ...target.gateways]) {
    await untilReady(process);
    const exitCode = await process.terminate();
    evidence.fault({ atMs: Date.now(), kind: 'terminate', target: process.name, exitCode });
    const times = await timesReady(target, process);
    process.start();
    await readyAgain(target, process, times);
  }
}

/**
 * One process after the other goes on from another checkout: after SIGTERM, or after kill -9 for every second one.
 * `halfway` runs when half of them do, beside the others.
 */
export async function rollTo(rig: ChaosRig, tree: string | undefined, halfway: () => Promise<void>): Promise<void> {
  const { target, evidence } = rig;
  for (const [index, process] of target.services.entries()) {
    if (index === Math.floor(target.services.length / 2)) await halfway();
    await untilReady(process);
    const times = await timesReady(target, process);
    if (index % 2 === 1) {
      evidence.fault({ atMs: Date.now(), kind: 'kill', target: process.name });
      await process.kill();
    } else evidence.fault({ atMs: Date.now(), kind: 'terminate', target: process.name, exitCode: await process.terminate() });
    process.tree = tree;
    process.start();
    await readyAgain(target, process, times);
  }
}

/** SIGTERM for a worker that is killed while it drains. */
export async function killDraining({ target, evidence }: ChaosRig, process: ServiceProcess): Promise<void> {
  await untilReady(process);
  await process.kill();
  const times = await timesReady(target, process);
  process.start({ FAILPOINT: killInDrain });
  await readyAgain(target, process, times);
  await process.terminate();
  const reached = process.endedBy === 'SIGKILL';
  evidence.fault({ atMs: Date.now(), kind: 'failpoint', target: process.name, failpoint: killInDrain, reached });
  process.start();
  await readyAgain(target, process, times + 1);
}

/** One that was killed a moment ago, and ends before it is ready, is ended by the signal and not by itself. */
async function untilReady(process: ServiceProcess): Promise<void> {
  await eventually(() => process.isReady, { timeoutMs: READY_TIMEOUT_MS, everyMs: 50 });
}

/** Its log has `ready` once more than so many times. */
async function readyAgain(target: Target, process: ServiceProcess, times: number): Promise<void> {
  await eventually(async () => (await timesReady(target, process)) > times, { timeoutMs: READY_TIMEOUT_MS, everyMs: 50 });
}

/** How often a process has reported ready. */
export async function timesReady({ logsFolder }: Pick<Target, 'logsFolder'>, { name }: ServiceProcess): Promise<number> {
  const text = await readFile(join(logsFolder, `${name}.log`), 'utf8').catch(() => '');
  return text.split('"msg":"ready"').length - 1;
}
