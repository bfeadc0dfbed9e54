import { expect, it, jest } from '@jest/globals';
import { eventually } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { keyOf, Lanes, queuePrefix } from '../src/index.ts';
import { laneMember } from '../src/keys.ts';
import { LEASE_MS, RENEW_EVERY_MS } from '../src/lanes/lanes.ts';
import { input, parse, TestTurns, textDelta, type BrokenRenewal } from './test-turns.ts';

// A lease is renewed several times.
jest.setTimeout(40_000);

let rig: TestTurns;

setUpEach(async (stack) => {
  rig = stack.use(await TestTurns.start());
});

it.each<BrokenRenewal>(['fails', 'hangs'])('a worker keeps its leases when a renewal %s, and the next one, too', async (broken) => {
  const scope = await rig.scope();
  // Renewed for longer than a lease lasts, so that whatever takes leases over has looked.
  const enough = Math.ceil(LEASE_MS / RENEW_EVERY_MS);
  rig.play = async (run) => {
    run.writer.emit(textDelta('still '));
    await run.writer.flush();
    await eventually(() => rig.renewed >= enough || run.signal.aborted, { timeoutMs: 20_000 });
    run.writer.emit(textDelta('here'));
    return 'still here';
  };
  await rig.worker({ renewals: [broken, broken] });
  const { turnId } = await rig.turns.accept(scope, input('wait'));
  await eventually(() => rig.started.length === 1);
  await rig.worker();
  rig.reconciler.start();
  const events = parse(await rig.read(scope, turnId));
  expect(events.map(({ type }) => type)).toEqual(['session', 'text_delta', 'text_delta', 'done']);
  expect(rig.started).toEqual([turnId]);
});

it('a busy worker finds the turn of a dead one when it renews its leases, before any reconciler', async () => {
  const scope = await rig.scope();
  using redis = { client: rig.server.client(), [Symbol.dispose]: (): void => redis.client.disconnect() };
  const { turnId, sessionId } = await rig.turns.accept(scope, input('of the dead'));
  const lane = { tenantId: scope.tenantId, sessionId };
  expect(await new Lanes(redis.client).lease({ ...lane, depth: 0 }, 'w_dead')).toMatchObject({ kind: 'leased' });
  await redis.client.del(`${queuePrefix}:turns:prioritized`);
  await redis.client.hset(keyOf.lease(lane), 'until', 1);
  await redis.client.zadd(keyOf.due, 1, laneMember(lane));
  rig.play = async (run) => {
    if (run.turn.turnId !== turnId) await eventually(() => rig.started.includes(turnId) || run.signal.aborted, { timeoutMs: 15_000 });
    return 'x';
  };
  await rig.worker();
  const busy = await rig.turns.accept(scope, input('busy', { sender: 'bob' }));
  expect(parse(await rig.read(scope, busy.turnId)).at(-1)?.type).toBe('done');
  expect(rig.started).toEqual([busy.turnId, turnId]);
});
