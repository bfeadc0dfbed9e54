import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually, type ServiceProcess, type System } from '@concierge/testing';
import type { ChaosRig } from '../rig.ts';

const LIBRARIES = '/usr/lib';
/** The one for programs with several threads. */
const LIBRARY = 'faketime/libfaketimeMT.so.1';
/** The library looks at a clock's file again after a second, and counts whole seconds. */
const SEEN_AFTER_MS = 2500;

/** Where Debian's `faketime` keeps the library; undefined when it is not installed. */
export function findFakeTime(): string | undefined {
  return readdirSync(LIBRARIES)
    .filter((name) => name.endsWith('-linux-gnu'))
    .flatMap((machine) => {
      const folder = join(LIBRARIES, machine, 'faketime');
      return exists(folder) ? [join(LIBRARIES, machine, LIBRARY)] : [];
    })[0];
}

function exists(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch {
    return false;
  }
}

/**
 * Wall clocks of single processes, stepped while these run. What measures durations, the monotonic clock, stays what it
 * is.
 */
export class SteppedClocks implements Disposable {
  readonly #library: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'concierge-clocks-'));

  constructor(library: string) {
    this.#library = library;
  }

  /** What a process of this name is started with. */
  buildEnvironment(name: string): Record<string, string> {
    this.#write(name, 0);
    return {
      // Redis' own allocator asks for the time before the library can answer: it gets the C library's allocator
      // instead.
      LD_PRELOAD: name === 'redis' ? `${this.#library}:libc.so.6` : this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#findFile(name),
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // Times of files are those of the disk.
      NO_FAKE_STAT: '1',
    };
  }

  /** Resolves when the process sees it. */
  async step(name: string, offsetSeconds: number): Promise<void> {
    this.#write(name, offsetSeconds);
    await wait(SEEN_AFTER_MS);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #findFile(name: string): string {
    return join(this.#folder, name);
  }

  #write(name: string, offsetSeconds: number): void {
    writeFileSync(this.#findFile(name), `${offsetSeconds < 0 ? '' : '+'}${String(offsetSeconds)}\n`);
  }
}

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
