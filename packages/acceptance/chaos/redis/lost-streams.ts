import { eventually } from '@concierge/testing';
import type { Asking } from '../load/load.ts';
import type { ChaosRig } from '../rig.ts';
import type { TurnRequest } from '../load/request.ts';
import { RedisFaults, type RedisFault } from './redis-faults.ts';

/** `flush` in the middle of the replies, `expired` when all of them have ended. */
export type StreamFault = Extract<RedisFault, 'full' | 'truncated'> | 'flush' | 'expired';
export const streamFaults: readonly StreamFault[] = ['full', 'truncated', 'flush', 'expired'];

export interface StreamRound {
  readonly fault: StreamFault;
  readonly turns: number;
}

/** In the middle of a reply of `CHUNKS` deltas. */
const FULL_MS = 1200;
const CHUNKS = 40;
const DELAY_MS = 60;
const MIDDLE_MS = (CHUNKS * DELAY_MS) / 4;
/** Seen before a reader goes away: the session event and the first words. */
const EVENTS_BEFORE_PAUSE = 8;
/** All turns of a round, on a machine that has much else to do. */
const BUSY_TIMEOUT_MS = 120_000;
const ROUND_TIMEOUT_MS = 480_000;

/**
 * Turns that are answered all at once, each asked in one of the ways in which a turn can be asked; in the middle, or as
 * they end, Redis loses something of their streams. Some readers are away meanwhile and resume when all turns have
 * ended.
 */
export async function runStreamRound(rig: ChaosRig, { fault, turns }: StreamRound): Promise<void> {
  const giveUp = AbortSignal.timeout(ROUND_TIMEOUT_MS);
  const isOver = Promise.withResolvers<void>();
  const markers = Array.from({ length: turns }, () => rig.newMarker(fault));
  const ways: readonly Pick<Asking, 'form' | 'pause'>[] = [
    { form: 'events' },
    { form: 'events', pause: { afterEvents: EVENTS_BEFORE_PAUSE, until: isOver.promise } },
    { form: 'json' },
    { form: 'completion' },
    { form: 'completionStream' },
  ];
  const asked = markers.map(async (marker, index) => {
    const request: TurnRequest = { marker, kind: 'slow', chunks: CHUNKS, delayMs: DELAY_MS };
    const tenantId = rig.random.pick(rig.tenantIds);
    await rig.load.askOnce({ request, tenantId, ...(ways[index % ways.length] ?? { form: 'events' }) }, giveUp);
  });
  await strike(rig, fault, new Set(markers));
  await rig.rest();
  isOver.resolve();
  await Promise.all(asked);
  // Reread before another fault hides what this one has done.
  await rig.load.rereadAll(giveUp);
}

async function strike(rig: ChaosRig, fault: StreamFault, markers: ReadonlySet<string>): Promise<void> {
  const { redis } = rig.target;
  const faults = new RedisFaults(redis, rig.evidence);
  const hasStarted = async (share: number): Promise<boolean> => (await countCalls(rig, 'start', markers)) >= markers.size * share;
  const hasEnded = async (share: number): Promise<boolean> => (await countCalls(rig, 'end', markers)) >= markers.size * share;
  const until = async (check: () => Promise<boolean>): Promise<void> => {
    await eventually(check, { timeoutMs: BUSY_TIMEOUT_MS, everyMs: 25 });
  };
  if (fault === 'truncated') {
    // Faults hit as the turns end: Redis loses the ends of streams whose heads it has kept.
    await faults.run(fault, async () => until(async () => hasEnded(1)));
    return;
  }
  await until(async () => hasStarted(1));
  if (fault === 'full') {
    await rig.quiet(MIDDLE_MS);
    await faults.run(fault, async () => rig.quiet(FULL_MS));
    return;
  }
  if (fault === 'flush') await rig.quiet(MIDDLE_MS);
  else await rig.rest();
  rig.evidence.fault({ atMs: Date.now(), kind: 'flush', target: 'redis' });
  await redis.flush();
}

async function countCalls({ evidence }: ChaosRig, event: 'start' | 'end', markers: ReadonlySet<string>): Promise<number> {
  const lines = await evidence.readLedger();
  return new Set(lines.filter((line) => line.event === event && markers.has(line.marker)).map(({ marker }) => marker)).size;
}
