import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@concierge/testing';
import { startProduct, type Product } from '../contestants.ts';
import { LoadDriver } from '../load/load-driver.ts';
import type { DueTurn, OpenResult } from '../load/open-load.ts';
import { BenchModel } from '../model.ts';
import { cpuSeconds, cpuSecondsOfAll } from '../process-figures.ts';
import { percentile } from '../bench.ts';
import type { TurnCosts } from './simulate.ts';

const MODEL_MS = 200;

/** Cold code is slow. */
const COLD_TURNS = 1500;
const COLD_EVERY_MS = 8;
const COLD_MODEL_MS = 20;
/** Before it is measured, so that as many turns end as begin. */
const LEAD_MS = 3000;

/** Far enough from one another that no turn meets another. */
const LONE_EVERY_MS = 400;
const LONE_MS = 8000;

/** A third more turns than its slots take. */
const SLOTS = 8;
const OVERLOAD = 4 / 3;
const FULL_MS = 12_000;

/** About half of what two cores bear. */
const CPU_PER_SECOND = 80;
const CPU_MS = 12_000;

const SYNCS = 200;

/** What systems are measured with. */
export interface Rig extends AsyncDisposable {
  readonly model: BenchModel;
  readonly driver: LoadDriver;
}

export async function startRig(): Promise<Rig> {
  await using parts = new AsyncDisposableStack();
  const model = parts.use(await BenchModel.start());
  const driver = parts.use(await LoadDriver.start());
  const kept = parts.move();
  return { model, driver, [Symbol.asyncDispose]: async () => kept.disposeAsync() };
}

/**
 * Measures what a turn costs on this machine, in three short runs with one gateway and one worker: turns by themselves,
 * more turns than there are slots, and turns that come evenly.
 */
export async function calibrate(rig: Rig): Promise<TurnCosts> {
  const { cpu, loneS } = await measureUnhindered(rig);
  const holdS = await measureHold(rig);
  const syncS = await measureSync();
  const insideS = Math.max(0, holdS - MODEL_MS / 1000 - cpu.workerS - cpu.redisS / 2 - syncS);
  const outsideS = Math.max(0, loneS - holdS - cpu.gatewayS - cpu.redisS / 2 - syncS);
  return { ...cpu, syncS, insideS, outsideS };
}

async function measureUnhindered(rig: Rig): Promise<{ readonly cpu: Cpu; readonly loneS: number }> {
  await using product = await startProduct(rig.model);
  await warmUp(rig, product);
  const even = evenly(LEAD_MS + CPU_MS, { everyMs: 1000 / CPU_PER_SECOND });
  const { cpu } = await runOpen(rig, product, { turns: even, warmUpMs: LEAD_MS, measureMs: CPU_MS });
  const lone = await runOpen(rig, product, { turns: evenly(LONE_MS, { everyMs: LONE_EVERY_MS }), warmUpMs: 0, measureMs: LONE_MS });
  return { cpu, loneS: percentile(lone.result.turnMs, 0.5) / 1000 };
}

/** How long a slot is taken by one turn: more turns wait than the slots take. */
async function measureHold(rig: Rig): Promise<number> {
  await using product = await startProduct(rig.model, { env: { WORKER_CONCURRENCY: String(SLOTS), TENANT_SHARE: String(SLOTS) } });
  await warmUp(rig, product);
  const turns = evenly(LEAD_MS + FULL_MS, { everyMs: MODEL_MS / SLOTS / OVERLOAD });
  const { result } = await runOpen(rig, product, { turns, warmUpMs: LEAD_MS, measureMs: FULL_MS });
  return (SLOTS * result.seconds) / result.turns;
}

/** Writes a small record and syncs it, as logs of acceptance do. */
async function measureSync(): Promise<number> {
  await using folder = await temporaryDirectory();
  const file = await open(join(folder.path, 'log'), 'w');
  await file.write(Buffer.alloc(SYNCS * 1024));
  await file.sync();
  const startedMs = performance.now();
  for (let number = 0; number < SYNCS; number += 1) {
    await file.write(Buffer.alloc(1024, number), 0, 1024, number * 1024);
    await file.datasync();
  }
  const seconds = (performance.now() - startedMs) / 1000 / SYNCS;
  await file.close();
  return seconds;
}

interface Pace {
  readonly everyMs: number;
  readonly modelMs?: number;
  readonly fromMs?: number;
}

/** Turns at the same distance from one another, each of a contact of its own. */
function evenly(lastsMs: number, { everyMs, modelMs = MODEL_MS, fromMs = 0 }: Pace): DueTurn[] {
  return Array.from({ length: Math.floor(lastsMs / everyMs) }, (_, number) => {
    return { atMs: fromMs + number * everyMs, tenant: number % TENANTS, sender: newSender(), modelMs };
  });
}

/** As many as `startProduct` makes. */
export const TENANTS = 8;
let senders = 0;
const newSender = (): string => `calibration-${String((senders += 1))}`;

/** Has the product run its code often enough before it is measured. */
export async function warmUp(rig: Rig, product: Product): Promise<void> {
  const measureMs = COLD_TURNS * COLD_EVERY_MS;
  await runOpen(rig, product, { turns: evenly(measureMs, { everyMs: COLD_EVERY_MS, modelMs: COLD_MODEL_MS }), warmUpMs: 0, measureMs });
}

type Cpu = Pick<TurnCosts, 'gatewayS' | 'workerS' | 'redisS' | 'othersS'>;

/** Runs a load of its own turns; the processor time of a turn by kinds of processes. */
export async function runOpen(
  { model, driver }: Rig,
  { system, target, pids }: Product,
  load: { readonly turns: readonly DueTurn[]; readonly warmUpMs: number; readonly measureMs: number },
): Promise<{ readonly result: OpenResult; readonly cpu: Cpu }> {
  const sum = (processes: readonly { readonly pid?: number | undefined }[]): number => cpuSecondsOfAll(processes.map(({ pid = 0 }) => pid));
  const take = () => ({
    gatewayS: sum(system.gateways),
    workerS: sum(system.workers),
    redisS: cpuSeconds(pids.at(-1) ?? 0),
    othersS: sum([model, driver]),
  });
  const { ports, apiKeys } = target;
  const { result, before, after } = await driver.open({ ports, apiKeys, ...load }, take);
  if (result.failures > 0) throw new Error(`${String(result.failures)} turns failed, the first one with ${result.firstFailure ?? '?'}`);
  const each = (kind: keyof Cpu): number => (after[kind] - before[kind]) / result.turns;
  return {
    result,
    cpu: { gatewayS: each('gatewayS'), workerS: each('workerS'), redisS: each('redisS'), othersS: each('othersS') },
  };
}
