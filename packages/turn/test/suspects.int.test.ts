import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { limits } from '@concierge/contract';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import { eventually, gate } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { wakeupQueueName, keyOf, queuePrefix, type Lease, type TurnReceipt, type TurnRun } from '../src/index.ts';
import { deriveTurnId } from '../src/keys.ts';
import { enqueuedTurn, TestLanes } from './test-lanes.ts';
import { input, parse, TestTurns } from './test-turns.ts';

describe('what a death of its worker is to a turn', () => {
  let fixture: TestLanes;

  setUpEach(async (stack) => {
    fixture = stack.use(await TestLanes.start());
    await fixture.empty();
  });

  /** Their worker dies, and its leases run out. */
  async function die(...leases: readonly Lease[]): Promise<void> {
    for (const lease of leases) await fixture.redis.hset(keyOf.lease(lease), 'until', 1);
  }

  async function startBeside(sessionIds: readonly string[], worker: string): Promise<Lease[]> {
    const leases: Lease[] = [];
    for (const sessionId of sessionIds) leases.push(await fixture.take(sessionId, { worker }));
    return leases;
  }

  it('is its last start only when it was alone: neighbours never get there', async () => {
    const sessions = ['poison', 'one', 'two'];
    for (const sessionId of sessions) await fixture.place(enqueuedTurn(sessionId));
    for (const worker of ['w1', 'w2', 'w3', 'w4', 'w5']) {
      const leases = await startBeside(sessions, worker);
      expect(Math.max(...leases.map(({ starts }) => starts))).toBeLessThanOrEqual(limits.turnMaxStarts);
      await die(...leases);
    }
    await die(...(await startBeside(['poison'], 'w6')));
    expect((await fixture.take('poison', { worker: 'w7' })).starts).toBe(limits.turnMaxStarts + 1);
    expect((await fixture.take('one', { worker: 'w7' })).starts).toBe(limits.turnMaxStarts);
  });

  it('ends it after exactly three starts when it was alone', async () => {
    await fixture.place(enqueuedTurn('poison'));
    const starts: number[] = [];
    for (const worker of ['w1', 'w2', 'w3', 'w4']) {
      const lease = await fixture.take('poison', { worker });
      starts.push(lease.starts);
      await die(lease);
    }
    expect(starts).toEqual([1, 2, 3, 4]);
  });

  it('is not its doing when it finished a step, or lives on elsewhere', async () => {
    for (const sessionId of ['poison', 'proven', 'given back']) await fixture.place(enqueuedTurn(sessionId));
    for (const worker of ['w1', 'w2']) await die(...(await startBeside(['poison'], worker)));
    const [poison, proven, givenBack] = await startBeside(['poison', 'proven', 'given back'], 'w3');
    if (poison === undefined || proven === undefined || givenBack === undefined) throw new Error('three leases');
    await fixture.append(proven, [{ seq: 1, type: 'step', json: '{}' }], { progress: true });
    await fixture.lanes.release(givenBack, { waitMs: 0, charged: false });
    await die(poison, proven);
    expect((await fixture.take('poison', { worker: 'w4' })).starts).toBe(limits.turnMaxStarts + 1);
    expect((await fixture.take('proven', { worker: 'w4' })).starts).toBe(1);
  });

  /** A start that finishes a step before its worker dies. */
  async function advanceAndDie(sessionId: string, worker: string): Promise<Lease> {
    const lease = await fixture.take(sessionId, { worker });
    if (lease.starts <= limits.turnMaxStarts) await fixture.append(lease, [{ seq: 1, type: 'step', json: '{}' }], { progress: true });
    await die(lease);
    return lease;
  }

  it('ends it after a bounded number of starts although it finishes a step in each of them', async () => {
    await fixture.place(enqueuedTurn('poison'));
    const starts: number[] = [];
    for (let worker = 0; worker <= limits.turnMaxCrashes; worker += 1) {
      starts.push((await advanceAndDie('poison', `w${String(worker)}`)).starts);
    }
    expect(starts.slice(0, -2).every((count) => count === 1)).toBe(true);
    expect(starts.slice(-2)).toEqual([limits.turnMaxStarts, limits.turnMaxStarts + 1]);
  });

  it('is the last start of a turn that finishes steps only when it was alone: neighbours never get there', async () => {
    for (const sessionId of ['poison', 'neighbour']) await fixture.place(enqueuedTurn(sessionId));
    for (let round = 0; round < 2 * limits.turnMaxCrashes; round += 1) {
      const leases = await startBeside(['poison', 'neighbour'], `w${String(round)}`);
      expect(Math.max(...leases.map(({ starts }) => starts))).toBeLessThanOrEqual(limits.turnMaxStarts);
      for (const lease of leases) await fixture.append(lease, [{ seq: 1, type: 'step', json: '{}' }], { progress: true });
      await die(...leases);
    }
    await die(...(await startBeside(['poison'], 'alone')));
    expect((await fixture.take('poison')).starts).toBe(limits.turnMaxStarts + 1);
    expect((await fixture.take('neighbour')).starts).toBe(limits.turnMaxStarts);
  });

  it('is not what a worker that stops or gives it back does to a turn, however often', async () => {
    await fixture.place(enqueuedTurn('long'));
    for (let round = 0; round < 3 * limits.turnMaxCrashes; round += 1) {
      const lease = await fixture.take('long', { worker: `w${String(round)}` });
      expect(lease).toMatchObject({ starts: 1, isLastStart: false });
      await fixture.append(lease, [{ seq: 1, type: 'step', json: '{}' }], { progress: true });
      await fixture.lanes.release(lease, { waitMs: 0, charged: false });
    }
  });

  it('makes the last start of a turn that finishes steps one in which it is alone', async () => {
    await fixture.place(enqueuedTurn('suspect'));
    for (let worker = 1; worker < limits.turnMaxCrashes; worker += 1) await advanceAndDie('suspect', `w${String(worker)}`);
    const lane = { tenantId: 'acme', sessionId: 'suspect', depth: 0 };
    expect(await fixture.lanes.lease(lane, 'w')).toMatchObject({ kind: 'alone', voids: 0 });
    const { isLastStart } = await fixture.take('suspect');
    expect(isLastStart).toBe(true);
  });

  it('makes the next start one that a worker asks for when it can be alone', async () => {
    await fixture.place(enqueuedTurn('suspect'));
    for (const worker of ['w1', 'w2']) await die(...(await startBeside(['suspect'], worker)));
    const lane = { tenantId: 'acme', sessionId: 'suspect', depth: 0 };
    expect(await fixture.lanes.lease(lane, 'w3')).toMatchObject({ kind: 'alone', voids: 0 });
    expect(await fixture.lanes.lease(lane, 'w3', { alone: true })).toMatchObject({ kind: 'leased', lease: { starts: 3 } });
  });
});

describe('a worker', () => {
  let fixture: TestTurns;
  let scope: TenantScope;
  let redis: Redis;

  setUpEach(async (stack) => {
    fixture = stack.use(await TestTurns.start());
    scope = await fixture.scope();
    redis = fixture.server.client();
    stack.defer(() => redis.disconnect());
  });

  /** A turn whose worker has died twice. */
  async function acceptSuspect(sender: string): Promise<TurnReceipt> {
    const dedupeId = `suspect:${sender}`;
    const lane = { tenantId: 'acme', sessionId: deriveSessionId('cs', 'web', sender) };
    await redis.hset(keyOf.lease(lane), { turn: deriveTurnId(await scope.identity(), dedupeId), starts: 2, until: 1, worker: 'dead' });
    return await fixture.turns.accept(scope, input(sender, { sender, dedupeId }));
  }

  /** Waits until this many wake-ups are being answered. */
  function wakeupsTaken(count: number): () => Promise<boolean> {
    return async () => (await redis.llen(`${queuePrefix}:${wakeupQueueName(0)}:active`)) >= count;
  }

  it('starts a suspect when no other turn may be what kills it, and none beside it', async () => {
    const proven = new Set<string>();
    const seen: Record<string, boolean> = {};
    const waiting = gate();
    const later = gate<TurnReceipt>();
    const prove = async (run: TurnRun): Promise<void> => {
      const { text, turnId } = run.turn;
      proven.add(text);
      await run.writer.step({
        kind: 'said',
        message: { id: `${turnId}.1`, turnId, at: new Date().toISOString(), role: 'assistant', text },
      });
    };
    fixture.play = async (run) => {
      const { text } = run.turn;
      if (text === 'neighbour') await waiting.opened;
      if (text === 'suspect') {
        seen['neighbour'] = proven.has('neighbour');
        later.open(await fixture.turns.accept(scope, input('later', { sender: 'bob' })));
        await eventually(wakeupsTaken(2));
      }
      if (text === 'later') seen['suspect'] = proven.has('suspect');
      await prove(run);
      return text;
    };
    await fixture.worker();
    await fixture.turns.accept(scope, input('neighbour', { sender: 'ann' }));
    await eventually(() => fixture.started.length === 1);
    const suspect = await acceptSuspect('suspect');
    await eventually(
      () =>
        fixture.started.length > 1 || fixture.answers.some(({ sessionId, kind }) => sessionId === suspect.sessionId && kind === 'alone'),
    );
    waiting.open();
    const { turnId } = await later.opened;
    expect(parse(await fixture.read(scope, turnId)).at(-1)?.type).toBe('done');
    expect(seen).toEqual({ neighbour: true, suspect: true });
  });

  it('starts suspects one after the other', async () => {
    let running = 0;
    let most = 0;
    fixture.play = async (run) => {
      running += 1;
      most = Math.max(most, running);
      if (fixture.started.length === 1) await eventually(wakeupsTaken(4));
      // Others would begin meanwhile.
      await eventually(() => running > 1, { timeoutMs: 200 }).catch(() => undefined);
      running -= 1;
      return run.turn.text;
    };
    const suspects = [];
    for (const sender of ['a', 'b', 'c', 'd']) suspects.push(await acceptSuspect(sender));
    await fixture.worker();
    fixture.reconciler.start();
    for (const { turnId } of suspects) expect(parse(await fixture.read(scope, turnId)).at(-1)?.type).toBe('done');
    expect(most).toBe(1);
  });
});
