import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { AppError, type TurnStep } from '@concierge/contract';
import { armFailpoints, openSqlite } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { eventually, gate, untilAborted } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { keyOf, LeaseLost, TurnCancelled, WorkerDraining } from '../src/index.ts';
import { deriveTurnId } from '../src/keys.ts';
import { input, parse, TestTurns, textDelta } from './test-turns.ts';

let fixture: TestTurns;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
});

describe('an accepted turn', () => {
  it('is on disk, runs, and leaves the inbox when its session is published', async () => {
    const scope = await fixture.scope();
    const { turnId, sessionId } = await fixture.turns.accept(scope, input('hello'));
    expect(await scope.inbox.read(turnId)).toMatchObject({ turnId, sessionId, text: 'hello' });
    await fixture.worker();
    const events = parse(await fixture.read(scope, turnId));
    expect(events.map(({ type }) => type)).toEqual(['session', 'text_delta', 'done']);
    await eventually(async () => (await scope.inbox.read(turnId)) === undefined);
    expect((await scope.sessions.load(sessionId))?.turns.map(({ id }) => id)).toEqual([turnId]);
  });

  it('is read again from any place without a gap or a repeat', async () => {
    const scope = await fixture.scope();
    fixture.play = async (run) => {
      for (const word of ['one ', 'two ', 'three']) {
        run.writer.emit(textDelta(word));
        await run.writer.flush();
      }
      return 'one two three';
    };
    await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('count'));
    const all = parse(await fixture.read(scope, turnId));
    for (const [index, { id }] of all.entries()) expect(parse(await fixture.read(scope, turnId, id))).toEqual(all.slice(index + 1));
  });

  it('is replayed from its session when the stream is gone', async () => {
    const scope = await fixture.scope();
    await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('hello'));
    const first = parse(await fixture.read(scope, turnId));
    await eventually(async () => (await scope.inbox.read(turnId)) === undefined);
    await fixture.logsAreSettled();
    await fixture.server.flush();
    expect(parse(await fixture.read(scope, turnId)).map(({ type, data }) => ({ type, data }))).toEqual(
      first.map(({ type, data }) => ({ type, data })),
    );
    const resumed = parse(await fixture.read(scope, turnId, first[1]?.id ?? ''));
    expect(resumed.map(({ type }) => type)).toEqual(['text_reset', 'text_delta', 'done']);
  });

  it('is found, and replayed, when its worker died before the index had it', async () => {
    const scope = await fixture.scope();
    await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('hello'));
    await fixture.read(scope, turnId);
    await eventually(async () => !(await scope.inbox.has(turnId)));
    await scope.index.listTurns({ limit: 1 });
    forgetTurns(scope);
    expect(await scope.index.findTurn(turnId)).toBeUndefined();
    expect(await fixture.turns.find(scope, turnId)).toMatchObject({ id: turnId, status: 'done' });
    await eventually(async () => (await scope.index.findTurn(turnId)) !== undefined);
    forgetTurns(scope);
    const { redis } = await fixture.another();
    await redis.del(keyOf.events(turnId));
    expect(parse(await fixture.read(scope, turnId)).map(({ type }) => type)).toEqual(['session', 'text_delta', 'done']);
  });

  it('is replayed without a repeat to a reader that was cut off in the replay', async () => {
    const scope = await fixture.scope();
    await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('hello'));
    const first = parse(await fixture.read(scope, turnId));
    await eventually(async () => (await scope.inbox.read(turnId)) === undefined);
    await fixture.logsAreSettled();
    await fixture.server.flush();
    for (const after of [null, first[0]?.id ?? '', first[1]?.id ?? '']) {
      const replayed = parse(await fixture.read(scope, turnId, after));
      for (const [index, { id }] of replayed.entries())
        expect(parse(await fixture.read(scope, turnId, id))).toEqual(replayed.slice(index + 1));
    }
  });

  it('runs in order of acceptance within its session', async () => {
    const scope = await fixture.scope();
    const receipts = [];
    for (const text of ['a', 'b', 'c', 'd']) receipts.push(await fixture.turns.accept(scope, input(text)));
    await fixture.worker();
    await fixture.read(scope, receipts.at(-1)?.turnId ?? '');
    expect(fixture.started).toEqual(receipts.map(({ turnId }) => turnId));
  });
});

/** As if a worker had died before it put them into the index. */
function forgetTurns({ tenantId }: TenantScope): void {
  const file = openSqlite(join(fixture.dataDir, 'index', tenantId, 'data.db'));
  file.database.exec('delete from turns; delete from pending');
  file.close();
}

describe('the same message', () => {
  it('is one turn, however often and wherever it is accepted, even after Redis lost everything', async () => {
    const scope = await fixture.scope();
    await fixture.worker();
    const twice = { dedupeId: 'key-1', sender: null };
    const receipts = await Promise.all(Array.from({ length: 10 }, async () => await fixture.turns.accept(scope, input('once', twice))));
    expect(new Set(receipts.map(({ turnId }) => turnId)).size).toBe(1);
    expect(new Set(receipts.map(({ sessionId }) => sessionId)).size).toBe(1);
    expect(receipts.filter(({ replayed }) => !replayed)).toHaveLength(1);
    await fixture.read(scope, receipts[0]?.turnId ?? '');
    await fixture.server.flush();
    expect(await fixture.turns.accept(scope, input('once', twice))).toMatchObject({ turnId: receipts[0]?.turnId, replayed: true });
    expect(fixture.started).toHaveLength(1);
  });

  it('is known when Redis is empty, the index cannot be asked, and compaction has taken its turn out of the session', async () => {
    const scope = await fixture.scope();
    await fixture.worker();
    const first = await fixture.turns.accept(scope, input('long ago', { dedupeId: 'key-1' }));
    await fixture.read(scope, first.turnId);
    const session = await scope.sessions.load(first.sessionId);
    if (session === undefined) throw new Error('no session');
    await scope.sessions.appendHistory(
      session.id,
      session.turns.map((turn) => ({ kind: 'turn', turn })),
    );
    await scope.sessions.publish({ ...session, revision: session.revision + 1, turns: [] });
    await fixture.server.flush();
    const database = join(fixture.dataDir, 'index', scope.tenantId, 'data.db');
    await rm(database);
    await mkdir(database);
    await expect(scope.index.findTurn(first.turnId)).rejects.toMatchObject({ code: 'ERR_SQLITE_ERROR' });
    expect(await fixture.turns.accept(scope, input('long ago', { dedupeId: 'key-1' }))).toEqual({ ...first, replayed: true });
    await expect(fixture.turns.accept(scope, input('another', { dedupeId: 'key-1' }))).rejects.toMatchObject({
      code: 'idempotency_conflict',
    });
    expect(fixture.started).toHaveLength(1);
  });

  it('keeps its place when it comes again after its gateway died before it had one', async () => {
    const scope = await fixture.scope();
    const messages = ['first', 'second'].map((text) => input(text, { dedupeId: text, sender: 'anna' }));
    const [first, second] = messages;
    if (first === undefined || second === undefined) throw new Error('two messages');
    armFailpoints('accept.after-inbox:throw');
    await expect(fixture.turns.accept(scope, first)).rejects.toThrow('fail point');
    const again = await fixture.turns.accept(scope, first);
    expect(again.replayed).toBe(true);
    const next = await fixture.turns.accept(scope, second);
    await fixture.worker();
    await fixture.read(scope, next.turnId);
    expect(fixture.started).toEqual([again.turnId, next.turnId]);
  });

  it('is a conflict when its content differs', async () => {
    const scope = await fixture.scope();
    await fixture.turns.accept(scope, input('one', { dedupeId: 'k' }));
    await expect(fixture.turns.accept(scope, input('two', { dedupeId: 'k' }))).rejects.toMatchObject({ code: 'idempotency_conflict' });
  });
});

describe('a session', () => {
  it('can be continued while its first turn still runs, and by its own agent only', async () => {
    const scope = await fixture.scope();
    const { sessionId } = await fixture.turns.accept(scope, input('first', { sender: null }));
    await fixture.turns.accept(scope, input('second', { sender: null, contactId: sessionId }));
    await expect(fixture.turns.accept(scope, input('x', { sender: null, contactId: sessionId, agent: 'admin' }))).rejects.toBeInstanceOf(
      AppError,
    );
    await expect(fixture.turns.accept(scope, input('x', { sender: null, contactId: 'f'.repeat(32) }))).rejects.toMatchObject({
      code: 'not_found',
    });
    await expect(fixture.turns.accept(scope, input('x', { contactId: sessionId }))).rejects.toMatchObject({ code: 'contact_mismatch' });
  });

  it('refuses a turn for a busy session when asked to, and forgets that turn', async () => {
    const scope = await fixture.scope();
    await fixture.turns.accept(scope, input('first'));
    await expect(fixture.turns.accept(scope, input('second', { busy: 'reject' }))).rejects.toMatchObject({ code: 'session_busy' });
    expect(await scope.inbox.turnIds()).toHaveLength(1);
  });

  it('gives way to a turn that interrupts', async () => {
    const scope = await fixture.scope();
    fixture.play = async (run) => {
      if (run.turn.text === 'long') await untilAborted(run.signal);
      return run.turn.text;
    };
    await fixture.worker();
    const long = await fixture.turns.accept(scope, input('long'));
    await eventually(() => fixture.started.length === 1);
    const short = await fixture.turns.accept(scope, input('short', { busy: 'interrupt' }));
    expect(parse(await fixture.read(scope, long.turnId)).at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'cancelled' } });
    expect(parse(await fixture.read(scope, short.turnId)).at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'stop' } });
  });

  it('sends a staff member’s message before a turn that interrupts', async () => {
    const scope = await fixture.scope();
    const staff = await fixture.turns.accept(scope, input('Anna here.', { origin: 'person', by: { kind: 'operator' } }));
    const contact = await fixture.turns.accept(scope, input('hello?', { busy: 'interrupt' }));
    expect(await scope.inbox.isCancelled(staff.turnId)).toBe(false);
    await fixture.worker();
    for (const { turnId } of [staff, contact])
      expect(parse(await fixture.read(scope, turnId)).at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'stop' } });
  });
});

describe('cancelling', () => {
  it('reaches a turn that waits, in its place', async () => {
    const scope = await fixture.scope();
    const reasons: unknown[] = [];
    fixture.play = async (run) => {
      await Promise.resolve();
      if (run.signal.aborted) reasons.push(run.signal.reason);
      return run.signal.aborted ? '' : run.turn.text;
    };
    const first = await fixture.turns.accept(scope, input('first'));
    const second = await fixture.turns.accept(scope, input('second'));
    await fixture.turns.cancel(scope, second.turnId);
    await fixture.server.flush();
    await fixture.reconciler.reconcile();
    await fixture.worker();
    expect(parse(await fixture.read(scope, first.turnId)).at(-1)).toMatchObject({ data: { finishReason: 'stop' } });
    expect(parse(await fixture.read(scope, second.turnId)).at(-1)).toMatchObject({ data: { finishReason: 'cancelled' } });
    expect(reasons).toEqual([expect.any(TurnCancelled)]);
  });
});

describe('what a crash leaves', () => {
  it('is an inbox file without a lane: the reconciler enqueues it', async () => {
    const scope = await fixture.scope();
    await fixture.worker();
    const turnId = deriveTurnId(await scope.identity(), 'orphan');
    const { busy: _busy, contactId: _contact, dedupeId: _dedupe, ...kept } = input('orphan');
    const facts = { version: 1, turnId, tenantId: 'acme', sessionId: 'a'.repeat(32), acceptedAtMs: Date.now() - 60_000 } as const;
    await scope.inbox.accept({ ...kept, ...facts });
    await eventually(async () => {
      await fixture.reconciler.reconcile();
      return fixture.started.includes(turnId);
    });
    expect(parse(await fixture.read(scope, turnId)).at(-1)?.type).toBe('done');
  });

  it('is a turn in the middle of its steps: another worker goes on after the last finished one', async () => {
    const scope = await fixture.scope();
    const begun = gate();
    const stepsSeen: number[] = [];
    fixture.play = async (run) => {
      stepsSeen.push(run.steps.length);
      if (run.steps.length > 0) return 'went on';
      run.writer.emit(textDelta('half a sent'));
      await run.writer.step({ kind: 'intent', callId: 'c', name: 'read' });
      begun.open();
      await untilAborted(run.signal);
      throw run.signal.reason;
    };
    const first = await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('long'));
    await begun.opened;
    await first.stop(0);
    await fixture.worker();
    expect(parse(await fixture.read(scope, turnId)).at(-1)?.type).toBe('done');
    expect(stepsSeen).toEqual([0, 1]);
  });

  it('is a frozen worker: its writes after its lease is gone reach no reader', async () => {
    const scope = await fixture.scope();
    const begun = gate();
    const thaw = gate();
    let refused: unknown;
    fixture.play = async (run) => {
      if (run.attempt > 1) return 'second';
      begun.open();
      await thaw.opened;
      run.writer.emit(textDelta('too late'));
      await run.writer.flush().catch((error: unknown) => {
        refused = error;
      });
      throw refused;
    };
    // It renews nothing: a renewal just before the reconciler looks would give the lease that has ended another length.
    await fixture.worker({ renewals: Array.from({ length: 1000 }, () => 'fails' as const) });
    const { turnId, sessionId } = await fixture.turns.accept(scope, input('x'));
    await begun.opened;
    const redis = fixture.server.client();
    await redis.hset(keyOf.lease({ tenantId: 'acme', sessionId }), 'until', 0);
    await redis.zadd(keyOf.due, 0, `acme/${sessionId}`);
    await fixture.reconciler.reconcile();
    const sse = await fixture.read(scope, turnId);
    thaw.open();
    await eventually(() => refused instanceof LeaseLost);
    expect(sse).not.toContain('too late');
    expect(await redis.xrange(keyOf.events(turnId), '-', '+')).not.toContainEqual(expect.arrayContaining(['too late']));
    redis.disconnect();
  });

  it('is an emptied Redis in the middle of a turn: it runs again and readers see its end', async () => {
    const scope = await fixture.scope();
    const begun = gate();
    fixture.play = async (run) => {
      const isSecond = fixture.started.length === 2;
      run.writer.emit(textDelta(isSecond ? 'kept' : 'lost'));
      await run.writer.flush();
      if (isSecond) return 'kept';
      begun.open();
      await untilAborted(run.signal);
      throw run.signal.reason;
    };
    await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('x'));
    const reading = fixture.read(scope, turnId);
    await begun.opened;
    await fixture.server.flush();
    await eventually(async () => {
      await fixture.reconciler.reconcile();
      return fixture.started.length === 2;
    });
    const events = parse(await reading);
    expect(events.filter(({ type }) => type === 'done')).toHaveLength(1);
    expect(events.map(({ data }) => data)).toContainEqual({ delta: 'kept' });
  });

  it('is a turn that fails every time: it ends in an error after three starts and the next one runs', async () => {
    const scope = await fixture.scope();
    fixture.play = async (run) => {
      await Promise.resolve();
      if (run.turn.text === 'poison') throw new Error('boom');
      return run.turn.text;
    };
    await fixture.worker();
    fixture.reconciler.start();
    const poison = await fixture.turns.accept(scope, input('poison'));
    const next = await fixture.turns.accept(scope, input('fine'));
    expect(parse(await fixture.read(scope, poison.turnId)).at(-1)).toMatchObject({ type: 'error', data: { code: 'turn_crashed' } });
    expect(parse(await fixture.read(scope, next.turnId)).at(-1)?.type).toBe('done');
    expect(fixture.started.filter((turnId) => turnId === poison.turnId)).toHaveLength(3);
  });

  it('is a draining worker: it takes nothing new and gives back what it has', async () => {
    const scope = await fixture.scope();
    const begun = gate();
    const reasons: unknown[] = [];
    fixture.play = async (run) => {
      if (run.attempt > 1) return 'x';
      begun.open();
      await untilAborted(run.signal);
      reasons.push(run.signal.reason);
      throw run.signal.reason;
    };
    const worker = await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('x'));
    await begun.opened;
    await worker.stop(10);
    expect(reasons).toEqual([expect.any(WorkerDraining)]);
    expect((await fixture.turns.find(scope, turnId))?.status).toBe('waiting');
    await fixture.worker();
    expect(parse(await fixture.read(scope, turnId)).at(-1)?.type).toBe('done');
  });
});

describe('a list of turns', () => {
  it('shows live and ended ones, newest acceptance first, page by page', async () => {
    const scope = await fixture.scope();
    const worker = await fixture.worker();
    const ended = [];
    for (const text of ['a', 'b', 'c']) ended.push(await fixture.turns.accept(scope, input(text)));
    await fixture.read(scope, ended.at(-1)?.turnId ?? '');
    await eventually(async () => (await scope.inbox.turnIds()).length === 0);
    await worker.stop(0);
    const waiting = await fixture.turns.accept(scope, input('d'));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await fixture.turns.list(scope, { limit: 2, cursor });
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual([waiting, ...ended.toReversed()].map(({ turnId }) => turnId));
    expect((await fixture.turns.list(scope, { limit: 10, status: 'waiting' })).items.map(({ id }) => id)).toEqual([waiting.turnId]);
    for (const { turnId, sessionId } of [waiting, ...ended]) {
      expect((await fixture.turns.list(scope, { limit: 10, contact_id: sessionId })).items.map(({ id }) => id)).toContain(turnId);
    }
    expect((await fixture.turns.list(scope, { limit: 10, contact_id: 'f'.repeat(32) })).items).toEqual([]);
  });
});

describe('the journal of a turn', () => {
  it('has every step once, however many calls of a command write theirs at the same time', async () => {
    const scope = await fixture.scope();
    const read = Promise.withResolvers<readonly TurnStep[]>();
    fixture.play = async (run) => {
      const buildStep = (index: number): TurnStep => ({
        kind: 'nested_intent',
        callId: `c1/${String(index)}`,
        parentId: 'c1',
        name: 'write',
      });
      await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          await run.writer.step(buildStep(index));
          await run.writer.persist();
        }),
      );
      read.resolve(await run.scope.inbox.readJournal(run.turn.turnId));
      return 'done';
    };
    await fixture.worker();
    await fixture.turns.accept(scope, input('x'));
    const names = (await read.promise).map((step) => (step.kind === 'nested_intent' ? step.callId : step.kind));
    expect(names).toEqual(Array.from({ length: 20 }, (_, index) => `c1/${String(index)}`));
  });
});
