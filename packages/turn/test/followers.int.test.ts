import { afterEach, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { TenantScope } from '@concierge/tenant';
import { eventually, gate } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import type { TurnStreams } from '../src/index.ts';
import { TurnFollower } from '../src/streams/turn-follower.ts';
import { holdClock, input, parse, readToEnd, TestTurns, textDelta } from './test-turns.ts';

let fixture: TestTurns;
let redis: Redis;
let scope: TenantScope;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
  redis = fixture.server.client();
  stack.defer(() => redis.disconnect());
  scope = await fixture.scope();
  // The process listens to what it accepts.
  await eventually(async () => (await redis.pubsub('CHANNELS', '*:live:@*')).length === 1);
});

afterEach(() => {
  jest.restoreAllMocks();
});

/** Readers get what is published and take no look when they hear nothing, and nothing kept for them grows old. */
function takeNoLooks(): void {
  jest.spyOn(TurnFollower.prototype, 'checkSilence').mockImplementation(() => undefined);
  holdClock();
}

/** What was said to a turn comes in three pieces; each waits for its gate. */
function speakIn(gates: readonly { readonly opened: Promise<void> }[]): void {
  fixture.play = async (run) => {
    for (const [index, { opened }] of gates.entries()) {
      await opened;
      run.writer.emit(textDelta(`${String(index)} `));
      await run.writer.flush();
    }
    return '0 1 2 ';
  };
}

async function readBy(streams: TurnStreams, turnId: string): Promise<string> {
  return readToEnd(streams, { scope, turnId, after: null });
}

async function countCalls(command: string): Promise<number> {
  const stats = await redis.info('commandstats');
  return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'mu').exec(stats)?.[1] ?? 0);
}

const spoken = ['session', 'text_delta', 'text_delta', 'text_delta', 'done'];
const typesIn = (sse: string): string[] => parse(sse).map(({ type }) => type);

it('a turn that is followed from its acceptance costs neither a subscription nor a look at its stream', async () => {
  takeNoLooks();
  const gates = [gate(), gate(), gate()];
  speakIn(gates);
  await fixture.worker();
  const before = [await countCalls('subscribe'), await countCalls('xrange')];
  const { turnId } = await fixture.turns.accept(scope, input('x'));
  const reading = fixture.read(scope, turnId);
  for (const one of gates) one.open();
  const sse = await reading;
  expect(typesIn(sse)).toEqual(spoken);
  expect([await countCalls('subscribe'), await countCalls('xrange')]).toEqual(before);
  expect(await fixture.read(scope, turnId)).toBe(sse);
});

it('what was published before the reader came, its end too, is there', async () => {
  takeNoLooks();
  const before = await countCalls('xrange');
  await fixture.worker();
  const { turnId } = await fixture.turns.accept(scope, input('x'));
  await eventually(async () => (await scope.inbox.read(turnId)) === undefined);
  expect(typesIn(await fixture.read(scope, turnId))).toEqual(['session', 'text_delta', 'done']);
  expect(await countCalls('xrange')).toBe(before);
});

it('readers that join elsewhere, before the turn runs and while it does, get every event at once', async () => {
  takeNoLooks();
  const gates = [gate(), gate(), gate()];
  speakIn(gates);
  const elsewhere = fixture.reader();
  const { turnId } = await fixture.turns.accept(scope, input('x'));
  const readings = [fixture.read(scope, turnId), readBy(elsewhere, turnId)];
  await fixture.worker();
  gates[0]?.open();
  await eventually(async () => (await redis.xlen(`concierge:{q0}:events:${turnId}`)) === 2);
  readings.push(readBy(fixture.reader(), turnId), fixture.read(scope, turnId));
  gates[1]?.open();
  gates[2]?.open();
  const [own, ...others] = await Promise.all(readings);
  expect(typesIn(own ?? '')).toEqual(spoken);
  for (const other of others) expect(other).toBe(own);
});

it('a reader whose connection breaks reads what it missed', async () => {
  const gates = [gate(), gate(), gate()];
  speakIn(gates);
  await fixture.worker();
  const { turnId } = await fixture.turns.accept(scope, input('x'));
  const reading = fixture.read(scope, turnId);
  gates[0]?.open();
  await eventually(async () => (await redis.xlen(`concierge:{q0}:events:${turnId}`)) === 2);
  await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  gates[1]?.open();
  gates[2]?.open();
  expect(typesIn(await reading)).toEqual(spoken);
});
