import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { HOUR_MS, AppError } from '@concierge/contract';
import { armFailpoints } from '@concierge/runtime';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import { eventually, gate, silentLog } from '@concierge/testing';
import type { Core } from '@concierge/testing/core';
import { setUpEach } from '@concierge/testing/set-up';
import { keyOf, Lanes, TurnReconciler, type TurnReceipt, type Turns } from '../src/index.ts';
import { takeTask } from '../src/due/reconciler.ts';
import { input, TestTurns } from './test-turns.ts';

let fixture: TestTurns;
let scope: TenantScope;
/** Two gateways: all they share is Redis and the disk. */
let one: Turns;
let other: Turns;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
  stack.defer(() => fixture.server.thaw());
  scope = await fixture.scope();
  [one, other] = [await fixture.gateway(), await fixture.gateway()];
});

interface Order {
  readonly started: readonly string[];
  readonly answered: readonly string[];
}

/** Runs everything; the session has no numbers any more then. */
async function runAll(): Promise<Order> {
  await fixture.worker();
  fixture.reconciler.start();
  await eventually(async () => (await scope.inbox.turnIds()).length === 0);
  await eventually(async () => (await scope.laneOrder.sessionIds()).length === 0);
  const session = await scope.sessions.load(deriveSessionId('cs', 'web', 'ann'));
  return { started: [...new Set(fixture.started)], answered: session?.turns.map(({ id }) => id) ?? [] };
}

function toOrder(...receipts: readonly TurnReceipt[]): Order {
  const turnIds = receipts.map(({ turnId }) => turnId);
  return { started: turnIds, answered: turnIds };
}

/** Redis is emptied just before its lanes are opened. */
class FlushedLanes extends Lanes {
  readonly #flush: () => Promise<void>;

  constructor(redis: Core['redis'], flush: () => Promise<void>) {
    super(redis);
    this.#flush = flush;
  }

  override async open(...given: Parameters<Lanes['open']>): ReturnType<Lanes['open']> {
    await this.#flush();
    return await super.open(...given);
  }
}

describe('a turn that was acknowledged first is answered first', () => {
  it('when Redis had no memory for it, and had it again for the next one', async () => {
    await fixture.server.fill();
    const first = await one.accept(scope, input('first'));
    await fixture.server.hasRoom();
    const second = await other.accept(scope, input('second'));
    expect(await runAll()).toEqual(toOrder(first, second));
  });

  it('when Redis is emptied once more while its lanes are restored', async () => {
    const first = await one.accept(scope, input('first'));
    await fixture.server.flush();
    const { redis, queue, tenants } = await fixture.another();
    const lanes = new FlushedLanes(redis, async () => fixture.server.flush());
    await new TurnReconciler({ redis, ...queue, lanes, tenants, log: silentLog }).reconcile();
    const second = await other.accept(scope, input('second'));
    expect(await runAll()).toEqual(toOrder(first, second));
  });

  it('when only a worker comes across it: no gateway could repair the lane, and no reconciler looks through the inbox', async () => {
    const redis = fixture.server.client();
    await takeTask(redis, keyOf.scanLock, { forMs: HOUR_MS });
    const arrival = gate();
    const never = await fixture.gateway({ refuses: new Promise(() => undefined) });
    const late = await fixture.gateway({ refuses: arrival.opened });
    const first = await never.accept(scope, input('first'));
    const second = await late.accept(scope, input('second'));
    arrival.open();
    await eventually(async () => (await redis.llen(keyOf.lane({ tenantId: 'acme', sessionId: first.sessionId }))) === 1);
    redis.disconnect();
    expect(await runAll()).toEqual(toOrder(first, second));
  });

  it('when Redis was gone', async () => {
    await fixture.server.kill();
    const first = await one.accept(scope, input('first'));
    await fixture.server.start();
    // One that has reached Redis again.
    const back = await fixture.gateway();
    const second = await back.accept(scope, input('second'));
    expect(await runAll()).toEqual(toOrder(first, second));
  });

  it('when Redis was frozen, and carries out what had timed out when it goes on', async () => {
    fixture.server.freeze();
    const first = await one.accept(scope, input('first'));
    fixture.server.thaw();
    const second = await other.accept(scope, input('second'));
    expect(await runAll()).toEqual(toOrder(first, second));
  });

  it('when its place is given after that of the next one', async () => {
    const arrival = gate();
    const late = await fixture.gateway({ refuses: arrival.opened });
    const first = await late.accept(scope, input('first'));
    const second = await other.accept(scope, input('second'));
    const third = await one.accept(scope, input('third'));
    arrival.open();
    const redis = fixture.server.client();
    await eventually(async () => (await redis.llen(keyOf.lane({ tenantId: 'acme', sessionId: first.sessionId }))) === 3);
    redis.disconnect();
    expect(await runAll()).toEqual(toOrder(first, second, third));
  });

  it('when Redis was killed before its last second was on disk', async () => {
    const written = await fixture.server.written();
    const first = await one.accept(scope, input('first'));
    await fixture.server.losePower(written);
    // One that has reached Redis again.
    const back = await fixture.gateway();
    const second = await back.accept(scope, input('second'));
    expect(await runAll()).toEqual(toOrder(first, second));
  });

  it('when Redis was emptied, and the clock of the gateway that took it is an hour ahead', async () => {
    const ahead = await fixture.gateway({ now: () => Date.now() + HOUR_MS });
    const receipts = [];
    for (const gateway of [ahead, other, ahead, one]) receipts.push(await gateway.accept(scope, input(String(receipts.length))));
    await fixture.server.flush();
    receipts.push(await other.accept(scope, input('after')));
    expect(await runAll()).toEqual(toOrder(...receipts));
  });

  it('when none of several found room, and their gateways disagree about the time', async () => {
    const ahead = await fixture.gateway({ now: () => Date.now() + HOUR_MS });
    await fixture.server.fill();
    const receipts = [];
    for (const gateway of [ahead, other, ahead]) receipts.push(await gateway.accept(scope, input(String(receipts.length))));
    await fixture.server.hasRoom();
    receipts.push(await one.accept(scope, input('room')));
    expect(await runAll()).toEqual(toOrder(...receipts));
  });

  it('when one that was acknowledged before it still waits in the lane', async () => {
    const before = await other.accept(scope, input('before'));
    await fixture.server.fill();
    const first = await one.accept(scope, input('first'));
    await fixture.server.hasRoom();
    const second = await other.accept(scope, input('second'));
    expect(await runAll()).toEqual(toOrder(before, first, second));
  });

  it('when it is brought again while Redis is full, after its first gateway died', async () => {
    const message = input('first', { dedupeId: 'message-1' });
    armFailpoints('accept.after-inbox:throw');
    await expect(one.accept(scope, message)).rejects.toThrow('fail point');
    await fixture.server.fill();
    const first = await other.accept(scope, message);
    await fixture.server.hasRoom();
    const second = await other.accept(scope, input('second'));
    expect(await runAll()).toEqual(toOrder(first, second));
  });

  it('and one that waits in the lane keeps its place when it is brought again meanwhile', async () => {
    const message = input('first', { dedupeId: 'message-1' });
    const first = await one.accept(scope, message);
    await fixture.server.fill();
    const second = await other.accept(scope, input('second'));
    await one.accept(scope, message);
    await fixture.server.hasRoom();
    const third = await other.accept(scope, input('third'));
    expect(await runAll()).toEqual(toOrder(first, second, third));
  });
});

describe('messages of one contact that arrive together', () => {
  const lines = (...texts: string[]) => texts.map((text) => input(text, { dedupeId: text }));
  async function bring(gateway: Turns, ...texts: string[]): Promise<TurnReceipt[]> {
    const { outcomes, failure } = await gateway.acceptInOrder(scope, lines(...texts));
    expect(failure).toBeUndefined();
    return outcomes.map((outcome) => {
      if (outcome instanceof AppError) throw outcome;
      return outcome;
    });
  }
  const texts = Array.from({ length: 40 }, (_, number) => `line ${String(number)}`);

  it('are answered in their order, and have no number on disk', async () => {
    // A Redis that stands still gives no place in time, and then there are numbers.
    const patient = await fixture.gateway({ role: 'worker' });
    const receipts = await bring(patient, ...texts);
    expect(await scope.laneOrder.sessionIds()).toEqual([]);
    const after = await other.accept(scope, input('after'));
    expect(await runAll()).toEqual(toOrder(...receipts, after));
  });

  it('are the same turns when they are brought again, before and after they are answered', async () => {
    const [third] = await bring(one, 'line 3');
    const receipts = await bring(one, 'line 0', 'line 3', 'line 1', 'line 1', 'line 2');
    expect(receipts.map(({ replayed }) => replayed)).toEqual([false, true, false, true, false]);
    expect(receipts[1]?.turnId).toBe(third?.turnId);
    const [zeroth, , first, , second] = receipts;
    expect((await runAll()).answered).toEqual([third, zeroth, first, second].map((receipt) => receipt?.turnId));
    const again = await bring(other, 'line 0', 'line 1', 'line 2', 'line 3');
    expect(again).toEqual([zeroth, first, second, third].map((receipt) => ({ ...receipt, replayed: true })));
    expect(await scope.inbox.turnIds()).toEqual([]);
  });

  it('stand in the log in their order, and the first copy of one is the new one, when the look at their tenant is slow', async () => {
    await bring(one, 'line 0');
    const identity = scope.identity.bind(scope);
    let looks = 0;
    const slow = jest.spyOn(scope, 'identity').mockImplementation(async () => {
      // The later a look begins, the sooner it ends.
      for (let left = 200 - 10 * (looks += 1); left > 0; left -= 1) await new Promise((resolve) => setImmediate(resolve));
      return await identity();
    });
    const receipts = await bring(one, 'line 1', 'line 2', 'line 3', 'line 2', 'line 4');
    slow.mockRestore();
    expect(receipts.map(({ replayed }) => replayed)).toEqual([false, false, false, true, false]);
    const [first, second, third, , fourth] = receipts;
    expect((await runAll()).started.slice(1)).toEqual([first, second, third, fourth].map((receipt) => receipt?.turnId));
  });

  it('stay in their order when Redis is found gone', async () => {
    await fixture.server.kill();
    const receipts = await bring(one, 'line 0', 'line 1', 'line 2');
    await fixture.server.start();
    const after = await (await fixture.gateway()).accept(scope, input('after'));
    expect(await runAll()).toEqual(toOrder(...receipts, after));
  });

  it('stay in their order when Redis goes in the middle, and carries out the rest late', async () => {
    const arrival = gate();
    const cut = await fixture.gateway({ refuses: arrival.opened, hears: 3 });
    const receipts = await bring(cut, ...texts.slice(0, 6));
    const after = await other.accept(scope, input('after'));
    arrival.open();
    expect(await runAll()).toEqual(toOrder(...receipts, after));
  });

  it('stay in their order when Redis has lost them all', async () => {
    const receipts = await bring(one, ...texts);
    await fixture.server.flush();
    expect(await runAll()).toEqual(toOrder(...receipts));
  });

  it('are the same turns when they are brought again after their gateway died', async () => {
    armFailpoints('accept.after-inbox:throw:2');
    const { outcomes, failure } = await one.acceptInOrder(scope, lines('line 0', 'line 1', 'line 2'));
    expect([outcomes.length, failure]).toEqual([1, expect.objectContaining({ message: expect.stringContaining('fail point') })]);
    const receipts = await bring(other, 'line 0', 'line 1', 'line 2');
    // What its caller was never told of is in the log of the first gateway alone: the same turns, accepted again.
    expect(receipts.map(({ replayed }) => replayed)).toEqual([true, false, false]);
    expect(receipts[0]).toMatchObject({ turnId: outcomes[0] instanceof AppError ? '' : outcomes[0]?.turnId });
    expect(await runAll()).toEqual(toOrder(...receipts));
    await one.stop();
    expect(await scope.inbox.turnIds()).toEqual([]);
  });

  it('that find no room are refused, each by itself, and leave nothing', async () => {
    const { outcomes } = await one.acceptInOrder(scope, lines(...Array.from({ length: 60 }, (_, number) => `line ${String(number)}`)));
    const refused = outcomes.filter((outcome) => outcome instanceof AppError);
    expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(['too_many_waiting']));
    expect(refused.length + (await scope.inbox.turnIds()).length).toBe(60);
  });
});

describe('an earlier turn without a place', () => {
  let first: TurnReceipt;
  beforeEach(async () => {
    await fixture.server.fill();
    first = await one.accept(scope, input('first', { busy: 'collect' }));
    await fixture.server.hasRoom();
  });

  it('makes the session busy for one that does not want to wait', async () => {
    await expect(other.accept(scope, input('second', { busy: 'reject' }))).rejects.toMatchObject({ code: 'session_busy' });
    expect(await runAll()).toEqual(toOrder(first));
  });

  it('is what the next one interrupts', async () => {
    const second = await other.accept(scope, input('second', { busy: 'interrupt' }));
    expect(await runAll()).toEqual(toOrder(first, second));
    expect((await scope.sessions.load(first.sessionId))?.turns).toMatchObject([{ status: 'cancelled' }, { status: 'done' }]);
  });

  it('takes along those behind it', async () => {
    const seen: (readonly string[])[] = [];
    fixture.play = async (run) => {
      seen.push(await run.waitingBehind(20));
      return run.turn.text;
    };
    const second = await other.accept(scope, input('second', { busy: 'collect', debounceMs: HOUR_MS }));
    expect(await runAll()).toEqual(toOrder(first, second));
    expect(seen[0]).toEqual([second.turnId]);
  });
});

describe('a turn that takes others along', () => {
  it('takes none that would overtake one without a place', async () => {
    const begun = gate();
    const goOn = gate();
    const looked = gate();
    const seen: (readonly string[])[] = [];
    fixture.play = async (run) => {
      if (fixture.started.length === 1) {
        begun.open();
        await goOn.opened;
      }
      // The number of a later one goes with its end.
      if (fixture.started.length > 1) await looked.opened;
      seen.push(await run.waitingBehind(20));
      return run.turn.text;
    };
    await fixture.worker();
    const first = await one.accept(scope, input('first', { busy: 'collect' }));
    await begun.opened;
    const unheard = await fixture.gateway({ refuses: new Promise(() => undefined) });
    const second = await unheard.accept(scope, input('second', { busy: 'collect' }));
    const redis = fixture.server.client();
    // As if it had been accepted by a gateway that could not repair the lane.
    const third = await unheard.accept(scope, input('third', { busy: 'collect' }));
    await redis.rpush(keyOf.lane({ tenantId: 'acme', sessionId: first.sessionId }), third.turnId);
    redis.disconnect();
    goOn.open();
    await fixture.read(scope, first.turnId);
    expect(seen[0]).toEqual([]);
    expect(await scope.laneOrder.read(first.sessionId)).toMatchObject({ numbered: [second.turnId, third.turnId] });
    looked.open();
  });
});

describe('a session that Redis keeps in order', () => {
  it('has no number on disk', async () => {
    let clock = Date.now();
    const now = (): number => (clock += 1);
    const gateways = [await fixture.gateway({ now, role: 'worker' }), await fixture.gateway({ now, role: 'worker' })];
    for (const gateway of [...gateways, ...gateways]) await gateway.accept(scope, input('x'));
    expect(await scope.laneOrder.sessionIds()).toEqual([]);
  });
});
