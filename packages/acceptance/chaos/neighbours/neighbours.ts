import { setTimeout as wait } from 'node:timers/promises';
import { ConciergeClient, ConciergeError } from '@concierge/client';
import { eventually, type ServiceProcess, type System, type TenantKeys } from '@concierge/testing';
import { toLoadMessage, type TurnRequest } from '../load/request.ts';
import type { ChaosRig } from '../rig.ts';

export interface FloodSize {
  /** Turns of one tenant, sent as fast as they are accepted. */
  readonly turns: number;
  /** How long the quiet tenants are alone before the flood. */
  readonly aloneMs: number;
}

const AT_ONCE = 40;
const LATER_MS = 200;
const QUIET_EVERY_MS = 1000;
const GIVE_UP_MS = 600_000;

/** Quiet tenants send a message now and then, first alone, then beside one that floods. */
export async function runFlood(rig: ChaosRig<System>, { turns, aloneMs }: FloodSize): Promise<void> {
  const [loud, ...quiet] = rig.tenants.values();
  if (loud === undefined) throw new Error('no tenant');
  const isOver = new AbortController();
  const phase = { name: 'alone' };
  const talking = quiet.map(async (keys, index) => await talk(rig, keys, { index, phase, isOver: isOver.signal }));
  await wait(aloneMs);
  phase.name = 'beside';
  await pour(rig, loud, turns);
  await rig.rest();
  isOver.abort();
  await Promise.all(talking);
}

/** A turn each second; its marker names the phase in which it was asked. */
async function talk(
  rig: ChaosRig<System>,
  { tenantId }: TenantKeys,
  { index, phase, isOver }: { readonly index: number; readonly phase: { readonly name: string }; readonly isOver: AbortSignal },
): Promise<void> {
  const reading: Promise<void>[] = [];
  for (let number = 0; !isOver.aborted; number += 1) {
    const request = { marker: `mk-${phase.name}-${String(index)}-${String(number)}`, kind: 'say', chunks: 4, delayMs: 20 } as const;
    reading.push(rig.load.askOnce({ request, tenantId, form: 'events' }, AbortSignal.timeout(GIVE_UP_MS)));
    await wait(QUIET_EVERY_MS, undefined, { signal: isOver }).catch(() => undefined);
  }
  await Promise.all(reading);
}

async function pour(rig: ChaosRig<System>, loud: TenantKeys, turns: number): Promise<void> {
  let next = 0;
  const source = async (): Promise<void> => {
    for (let number = next++; number < turns; number = next++) {
      const request: TurnRequest = { marker: `mk-loud-0-${String(number)}`, kind: 'say', chunks: 8, delayMs: 40 };
      while (!(await isTaken(rig, loud, request))) await wait(LATER_MS);
      rig.evidence.flooded({ marker: request.marker, atMs: Date.now() });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, source));
}

/** Goes away with the first event: the turn is accepted, and its events are never read. */
async function isTaken(rig: ChaosRig<System>, loud: TenantKeys, request: TurnRequest): Promise<boolean> {
  const client = new ConciergeClient({ baseUrl: rig.random.pick(rig.target.gatewayUrls), apiKey: loud.cs });
  const body = { message: toLoadMessage(request), sender: `loud ${request.marker}` };
  try {
    const events = client.streamTurn('cs', body, { idempotencyKey: request.marker, maxRetries: 0 });
    for await (const { type } of events) if (type === 'session') return true;
  } catch (error) {
    if (!ConciergeError.from(error).retryable) throw error;
  }
  return false;
}

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

export interface PoisonRound {
  readonly innocents: number;
}

const ROUND_TIMEOUT_MS = 480_000;
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
