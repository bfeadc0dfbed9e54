import { HOUR_MS } from '@concierge/contract';
import { describe, expect, it } from '@jest/globals';
import type { TenantScope } from '@concierge/tenant';
import { eventually } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { keyOf, type TurnReceipt } from '../src/index.ts';
import { input, TestTurns } from './test-turns.ts';

/** Longer than any test: a later message or another process ends the debounce. */
const SOON_MS = 100;

let fixture: TestTurns;
let scope: TenantScope;
/** For each turn that ran: the turns that waited behind it when it began. */
let behind: (readonly string[])[];

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
  scope = await fixture.scope();
  behind = [];
  fixture.play = async (run) => {
    behind.push(await run.waitingBehind(20));
    return run.turn.text;
  };
});

/** Accepts a message as a channel does. */
async function say(text: string, { debounceMs = SOON_MS, turns = fixture.turns } = {}): Promise<TurnReceipt> {
  return await turns.accept(scope, input(text, { busy: 'collect', debounceMs }));
}

/** The loss has not been noticed yet. */
async function timeHasCome(sessionId: string): Promise<void> {
  const redis = fixture.server.client();
  await redis.zadd(keyOf.debounced, 'XX', 0, `acme/${sessionId}`);
  redis.disconnect();
}

describe('quick messages', () => {
  it('wait for one another, and are there when the first one begins', async () => {
    await fixture.worker();
    const receipts = [];
    for (const text of ['a', 'b', 'c', 'd']) receipts.push(await say(text, { debounceMs: HOUR_MS }));
    // From the last one on it may run, and be gone.
    expect(await scope.inbox.read(receipts[0]?.turnId ?? '')).toMatchObject({ collects: true });
    receipts.push(await say('e'));
    const [first = '', ...others] = receipts.map(({ turnId }) => turnId);
    await fixture.read(scope, first);
    expect(fixture.started[0]).toBe(first);
    expect(behind[0]).toEqual(others);
  });

  it('run at once when one with a picture arrives', async () => {
    await fixture.worker();
    const { turnId: first } = await say('look at this', { debounceMs: HOUR_MS });
    const { turnId: picture } = await say('', { debounceMs: 0 });
    await fixture.read(scope, first);
    expect(behind[0]).toEqual([picture]);
  });

  it('are found by the reconciler when the gateway whose timer would have started them has died', async () => {
    await fixture.worker();
    const gateway = await fixture.gateway({ role: 'worker' });
    const { turnId, sessionId } = await say('anybody?', { debounceMs: HOUR_MS, turns: gateway });
    await gateway.stop();
    await timeHasCome(sessionId);
    fixture.reconciler.start();
    await fixture.read(scope, turnId);
    expect(fixture.started).toEqual([turnId]);
  });

  it('wait together, whichever gateway took them', async () => {
    await fixture.worker();
    const gateway = await fixture.gateway({ role: 'worker' });
    const { turnId: first } = await say('one', { debounceMs: HOUR_MS });
    const { turnId: second } = await say('two', { turns: gateway });
    await fixture.read(scope, first);
    expect(behind[0]).toEqual([second]);
  });

  it('are all run, in order, after Redis lost everything while they waited', async () => {
    await fixture.worker();
    const receipts = [await say('one', { debounceMs: HOUR_MS }), await say('two', { debounceMs: HOUR_MS })];
    await fixture.server.flush();
    fixture.reconciler.start();
    const { turnId: third } = await say('three', { debounceMs: 0 });
    await eventually(async () => (await scope.inbox.turnIds()).length === 0);
    expect(fixture.started).toEqual([...receipts.map(({ turnId }) => turnId), third]);
  });

  it('are taken in the order of their numbers, wherever a late repair has put them', async () => {
    const [one, two, three] = [await say('one', { debounceMs: HOUR_MS }), await say('two'), await say('three')];
    for (const { sessionId, turnId } of [one, two, three]) await scope.laneOrder.claim(sessionId, turnId);
    const redis = fixture.server.client();
    // As a repair leaves it that read the numbers before the newest turn had one.
    const lane = keyOf.lane({ tenantId: 'acme', sessionId: one.sessionId });
    fixture.play = async (run) => {
      await redis.multi().lrem(lane, 0, two.turnId).rpush(lane, two.turnId).exec();
      behind.push(await run.waitingBehind(20));
      return run.turn.text;
    };
    await fixture.worker();
    await fixture.read(scope, one.turnId);
    redis.disconnect();
    expect(behind[0]).toEqual([two.turnId, three.turnId]);
  });

  it('end when they are cancelled, without having waited', async () => {
    await fixture.worker();
    const { turnId, sessionId } = await say('never mind', { debounceMs: HOUR_MS });
    await fixture.turns.cancel(scope, turnId);
    await eventually(async () => (await scope.inbox.read(turnId)) === undefined);
    expect((await scope.sessions.load(sessionId))?.turns).toMatchObject([{ id: turnId, status: 'cancelled' }]);
  });

  it('are one turn when they are brought twice', async () => {
    const again = { busy: 'collect', debounceMs: HOUR_MS, dedupeId: 'channel:1' } as const;
    const [one, other] = [await fixture.turns.accept(scope, input('hi', again)), await fixture.turns.accept(scope, input('hi', again))];
    expect(other).toEqual({ ...one, replayed: true });
    expect(await scope.inbox.turnIds()).toEqual([one.turnId]);
  });
});
