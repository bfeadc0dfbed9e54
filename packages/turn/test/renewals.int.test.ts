import { expect, it } from '@jest/globals';
import { eventually } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { keyOf, Lanes, queuePrefix } from '../src/index.ts';
import { laneMember } from '../src/keys.ts';
import { LEASE_MS, RENEW_EVERY_MS } from '../src/lanes/lanes.ts';
import { input, parse, TestTurns, textDelta, type BrokenRenewal } from './test-turns.ts';

let fixture: TestTurns;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
});

it.each<BrokenRenewal>(['fails', 'hangs'])('a worker keeps its leases when a renewal %s, and the next one, too', async (broken) => {
  const scope = await fixture.scope();
  // Renewed for longer than a lease lasts, so that whatever takes leases over has looked.
  const enough = Math.ceil(LEASE_MS / RENEW_EVERY_MS);
  fixture.play = async (run) => {
    run.writer.emit(textDelta('still '));
    await run.writer.flush();
    await eventually(() => fixture.renewed >= enough || run.signal.aborted);
    run.writer.emit(textDelta('here'));
    return 'still here';
  };
  await fixture.worker({ renewals: [broken, broken] });
  const { turnId } = await fixture.turns.accept(scope, input('wait'));
  await eventually(() => fixture.started.length === 1);
  await fixture.worker();
  fixture.reconciler.start();
  const events = parse(await fixture.read(scope, turnId));
  expect(events.map(({ type }) => type)).toEqual(['session', 'text_delta', 'text_delta', 'done']);
  expect(fixture.started).toEqual([turnId]);
});

it('a busy worker finds the turn of a dead one when it renews its leases, before any reconciler', async () => {
  const scope = await fixture.scope();
  using redis = { client: fixture.server.client(), [Symbol.dispose]: (): void => redis.client.disconnect() };
  const { turnId, sessionId } = await fixture.turns.accept(scope, input('of the dead'));
  const lane = { tenantId: scope.tenantId, sessionId };
  expect(await new Lanes(redis.client).lease({ ...lane, depth: 0 }, 'w_dead')).toMatchObject({ kind: 'leased' });
  await redis.client.del(`${queuePrefix}:turns:prioritized`);
  await redis.client.hset(keyOf.lease(lane), 'until', 1);
  await redis.client.zadd(keyOf.due, 1, laneMember(lane));
  fixture.play = async (run) => {
    if (run.turn.turnId !== turnId) await eventually(() => fixture.started.includes(turnId) || run.signal.aborted);
    return 'x';
  };
  await fixture.worker();
  const busy = await fixture.turns.accept(scope, input('busy', { sender: 'bob' }));
  expect(parse(await fixture.read(scope, busy.turnId)).at(-1)?.type).toBe('done');
  expect(fixture.started).toEqual([busy.turnId, turnId]);
});
