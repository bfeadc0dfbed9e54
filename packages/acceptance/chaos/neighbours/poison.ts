import { setTimeout as wait } from 'node:timers/promises';
import { eventually, type System } from '@concierge/testing';
import type { ChaosRig } from '../rig.ts';
import type { TurnRequest } from '../load/request.ts';

export interface PoisonRound {
  readonly innocents: number;
}

const ROUND_TIMEOUT_MS = 240_000;
const LOOK_EVERY_MS = 20;
/** Time that the innocent turns get to be in progress when the poison strikes. */
const BESIDE_TIMEOUT_MS = 30_000;
const CHUNKS = 40;
const DELAY_MS = 100;

/**
 * Innocent turns, and in the middle of them one that kills the process that runs it as soon as it asks its model, as
 * often as it is started. Workers that die are started again at once.
 */
export async function runPoisonRound(rig: ChaosRig<System>, { innocents }: PoisonRound): Promise<void> {
  const giveUp = AbortSignal.timeout(ROUND_TIMEOUT_MS);
  const ask = (kind: TurnRequest['kind']): void => {
    const request = { marker: rig.newMarker(kind), kind, chunks: CHUNKS, delayMs: DELAY_MS };
    asked.push(rig.load.askOnce({ request, tenantId: rig.random.pick(rig.tenantIds), form: 'events' }, giveUp));
  };
  const asked: Promise<void>[] = [];
  const isOver = new AbortController();
  const killing = killWorkersByPoison(rig, isOver.signal);
  for (let index = 0; index < innocents; index += 1) ask('slow');
  // They are all in the middle of their answers.
  await eventually(async () => (await rig.callsInFlight()).length >= innocents, { timeoutMs: BESIDE_TIMEOUT_MS }).catch(() => undefined);
  ask('poison');
  await Promise.all(asked);
  isOver.abort();
  await killing;
}

/** The process that asks the model of a poison turn dies of it, each time. */
async function killWorkersByPoison(rig: ChaosRig<System>, isOver: AbortSignal): Promise<void> {
  const died = new Set<number>();
  while (!isOver.aborted) {
    const [call] = (await rig.callsInFlight()).filter(({ marker, number }) => marker.startsWith('mk-poison-') && !died.has(number));
    const worker = rig.target.workers.find(({ name }) => name === call?.caller);
    if (call !== undefined && worker !== undefined) {
      died.add(call.number);
      rig.evidence.fault({ atMs: Date.now(), kind: 'kill', target: worker.name });
      await worker.kill();
      worker.start();
    }
    await wait(LOOK_EVERY_MS);
  }
}
