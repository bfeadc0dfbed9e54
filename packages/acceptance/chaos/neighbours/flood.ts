import { setTimeout as wait } from 'node:timers/promises';
import { ConciergeClient, ConciergeError } from '@concierge/client';
import type { System, TenantKeys } from '@concierge/testing';
import { messageOf, type TurnRequest } from '../load/request.ts';
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
  const body = { message: messageOf(request), sender: `loud ${request.marker}` };
  try {
    const events = client.streamTurn('cs', body, { idempotencyKey: request.marker, maxRetries: 0 });
    for await (const { type } of events) if (type === 'session') return true;
  } catch (error) {
    if (!ConciergeError.from(error).retryable) throw error;
  }
  return false;
}
