import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { eventually, gate } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { sumWaiting, viewOverview, viewWaiting, WaitingRoom, type WaitingLook } from '../src/index.ts';
import { input, TestTurns } from './test-turns.ts';

let fixture: TestTurns;
let room: WaitingRoom;

let held: ReturnType<typeof gate<void>>;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
  held = gate();
  stack.defer(() => held.open());
  const redis = fixture.server.client();
  stack.defer(() => redis.disconnect());
  room = new WaitingRoom(redis);
});

/** Turns that wait, by reason, leaving out reasons for which none does. */
function counted(look: WaitingLook): Record<string, number> {
  return Object.fromEntries(
    sumWaiting(look)
      .filter(({ turns }) => turns > 0)
      .map(({ reason, turns }) => [reason, turns]),
  );
}

/** Resolves with the look that has this. */
async function waitFor(expected: Record<string, number>): Promise<WaitingLook> {
  return eventually(async () => {
    const look = await room.look();
    return JSON.stringify(counted(look)) === JSON.stringify(expected) ? look : undefined;
  });
}

async function accept(text: string, sender: string, facts: Parameters<typeof input>[1] = {}): Promise<string> {
  return (await fixture.turns.accept(await fixture.scope(), input(text, { sender, ...facts }))).turnId;
}

describe('a look at what waits', () => {
  it('finds nothing where nothing waits', async () => {
    await fixture.worker();
    // A worker that stood still since its report counts as gone until the next one.
    const look = await eventually(async () => {
      const seen = await waitFor({});
      return seen.workers.some(({ state }) => state === 'running') ? seen : undefined;
    });
    expect(look).toMatchObject({ waiting: [], isWhole: true });
    expect(viewOverview(look)).toMatchObject({ summary: 'All well: nothing waits.', workers: { running: 1, draining: 0, stalled: 0 } });
  });

  it('finds turns that no worker takes', async () => {
    const turnId = await accept('hello', 'ann');
    const look = await waitFor({ no_worker: 1 });
    expect(look.waiting).toMatchObject([{ reason: 'no_worker', turnId, count: 1 }]);
    expect(viewOverview(look).summary).toMatch(/^acme: a turn has waited \d+ s\. It may run, and no worker takes turns\.$/u);
  });

  it('distinguishes turns behind their own conversation, for a share, and for a slot', async () => {
    fixture.play = async ({ turn }) => {
      await held.opened;
      return turn.text;
    };
    await fixture.worker({ concurrency: 2, tenantShare: 3 });
    const first = await accept('one', 'ann');
    await accept('two', 'ben');
    await eventually(() => fixture.started.length === 2);
    const behind = await accept('and then?', 'ann');
    await accept('hello?', 'ann');
    const noSlot = await accept('three', 'cleo');
    const inLine = await accept('four', 'dan');
    await accept('five', 'eve');
    const look = await waitFor({ own_session: 2, tenant_share: 2, no_free_slot: 1 });
    const views = look.waiting.map((turns) => viewWaiting(turns, look));
    expect(views).toContainEqual(
      expect.objectContaining({
        reason: 'own_session',
        turnId: behind,
        turns: 2,
        behind: first,
        why: `It waits behind ${first} of its conversation, which runs.`,
        startsWhen: 'That turn ends.',
        isBehindRunning: true,
      }),
    );
    expect(views).toContainEqual(
      expect.objectContaining({
        turnId: noSlot,
        workers: 1,
        slots: 2,
        why: 'It may run, and waits for a free slot of 1 worker with 2 slots.',
      }),
    );
    expect(views).toContainEqual(
      expect.objectContaining({
        turnId: inLine,
        ahead: 0,
        placesInUse: 3,
        places: 3,
        why: 'It waits for a place: the tenant has 3 of its 3 places in use, and it is the next.',
      }),
    );
    // A worker reports every two seconds what it runs. One look: by the next one it may have stood still for too long.
    const overview = await eventually(async () => {
      const seen = viewOverview(await room.look());
      return seen.running === 2 && seen.slots === 2 ? seen : undefined;
    });
    expect(overview).toMatchObject({ running: 2, slots: 2 });
    held.open();
    await waitFor({});
  });

  it('finds conversations that wait for more messages', async () => {
    await fixture.worker();
    await accept('part one', 'ann', { busy: 'collect', debounceMs: 600_000 });
    await accept('part two', 'ann', { busy: 'collect', debounceMs: 600_000 });
    const look = await waitFor({ debounce: 2 });
    expect(look.waiting[0]?.dueInMs).toBeGreaterThan(0);
  });

  it('finds turns of a suspended tenant, which are tried again', async () => {
    const scope = await fixture.scope();
    await fixture.worker();
    await fixture.tenants.setSuspended(scope.tenantId, true);
    await accept('hello', 'ann');
    const look = await waitFor({ paused: 1 });
    expect(viewWaiting(look.waiting[0] ?? never(), look).why).toMatch(/suspended/u);
  });

  it('reads no more than it may, and says so', async () => {
    for (let index = 0; index < 5; index += 1) await accept('hello', `sender ${String(index)}`);
    const look = await room.look(3);
    expect(look.isWhole).toBe(false);
    expect(counted(look)).toEqual({ no_worker: 3 });
  });
});

describe('a waiting turn', () => {
  it('says why it waits, to who asks for it', async () => {
    const scope = await fixture.scope();
    const first = await accept('one', 'ann');
    const second = await accept('two', 'ann');
    const third = await accept('three', 'ann');
    const find = async (turnId: string) => (await fixture.turns.find(scope, turnId, { explains: true }))?.waitsFor;
    expect(await find(first)).toEqual({
      reason: 'no_worker',
      why: 'It may run, and waits for a worker.',
      startsWhen: 'A worker takes it.',
      behind: null,
    });
    expect(await find(second)).toMatchObject({ reason: 'own_session', behind: first });
    expect(await find(third)).toMatchObject({ reason: 'own_session', behind: second });
  });

  it('says so in a list, too, each with its own reason, and nothing of the workers', async () => {
    const scope = await fixture.scope();
    const first = await accept('one', 'ann');
    const second = await accept('two', 'ann');
    const debounced = await accept('part one', 'ben', { busy: 'collect', debounceMs: 600_000 });
    const { items } = await fixture.turns.list(scope, { limit: 10 });
    const listed = await fixture.turns.withWaits(scope, items);
    const waits = Object.fromEntries(listed.map(({ id, waitsFor }) => [id, waitsFor]));
    expect(waits[first]).toEqual({
      reason: 'no_worker',
      why: 'It may run, and waits for a worker.',
      startsWhen: 'A worker takes it.',
      behind: null,
    });
    expect(waits[second]).toMatchObject({ reason: 'own_session', behind: first, isBehindRunning: false });
    expect(waits[debounced]).toMatchObject({ reason: 'debounce', dueSeconds: expect.any(Number) });
  });

  it('says nothing of it once it runs, or when it is not asked for', async () => {
    const scope = await fixture.scope();
    fixture.play = async () => {
      await held.opened;
      return 'done';
    };
    const turnId = await accept('one', 'ann');
    expect((await fixture.turns.find(scope, turnId))?.waitsFor).toBeUndefined();
    await fixture.worker();
    await eventually(() => fixture.started.length === 1);
    expect((await fixture.turns.find(scope, turnId, { explains: true }))?.waitsFor).toBeUndefined();
    held.open();
    await eventually(async () => (await fixture.turns.find(scope, turnId))?.status === 'done');
  });

  it('says how many stand before it for the share', async () => {
    const scope = await fixture.scope();
    const places = 16;
    for (let index = 0; index < places + 1; index += 1) await accept('hello', `sender ${String(index)}`);
    const last = await accept('hello', 'the last');
    expect((await fixture.turns.find(scope, last, { explains: true }))?.waitsFor).toMatchObject({ reason: 'tenant_share' });
    expect(limits.tenantMaxWaiting).toBeGreaterThan(places);
  });
});

function never(): never {
  throw new Error('nothing waits');
}
