import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { TurnStep } from '@concierge/contract';
import { eventually, gate, untilAborted } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { keyOf } from '../src/index.ts';
import { TurnFollower } from '../src/streams/turn-follower.ts';
import { input, parse, TestTurns, textDelta } from './test-turns.ts';

let fixture: TestTurns;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
});

afterEach(() => {
  jest.restoreAllMocks();
});

const at = '2026-11-20T12:00:00.000Z';

function buildSteps(turnId: string): TurnStep[] {
  const base = { turnId, at };
  const usage = { model: 'test/one', calls: 1, inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, costUsd: null };
  const toolCalls = [{ id: 'c1', name: 'memory_write', arguments: '{"text":"a"}' }];
  return [
    { kind: 'prompt', message: { ...base, id: `${turnId}.0`, role: 'user', text: 'x', sent: 'x' } },
    {
      kind: 'assistant',
      message: { ...base, id: `${turnId}.1`, role: 'assistant', text: 'first ', toolCalls },
      finishReason: 'tool_calls',
      usage,
      startedAtMs: 1,
      firstTextAtMs: 1,
      durationMs: 1,
    },
    { kind: 'intent', callId: 'c1', name: 'memory_write' },
    {
      kind: 'result',
      message: { ...base, id: `${turnId}.1.1`, role: 'tool', callId: 'c1', name: 'memory_write', output: 'Kept.', isError: false },
      startedAtMs: 1,
      durationMs: 7,
    },
  ];
}

/** A play whose first start journals four steps and gets no further; records how many steps each start found. */
function interrupted(): { seen: number[]; begun: ReturnType<typeof gate> } {
  const seen: number[] = [];
  const begun = gate();
  fixture.play = async (run) => {
    seen.push(run.steps.length);
    if (seen.length > 1) return 'first ';
    for (const step of buildSteps(run.turn.turnId)) run.writer.record(step);
    await run.writer.persist();
    begun.open();
    await untilAborted(run.signal);
    throw run.signal.reason;
  };
  return { seen, begun };
}

describe('a turn whose stream is lost on the way', () => {
  it('is replayed from its journal, so that old and new readers see the same', async () => {
    const scope = await fixture.scope();
    const begun = gate();
    fixture.play = async (run) => {
      if (fixture.started.length === 1) {
        for (const step of buildSteps(run.turn.turnId)) run.writer.record(step);
        await run.writer.persist();
        await run.writer.flush();
        // Writes as a worker that froze just before it would.
        await run.scope.inbox.appendJournal(run.turn.turnId, buildSteps(run.turn.turnId).slice(0, 3));
        begun.open();
        await untilAborted(run.signal);
        throw run.signal.reason;
      }
      expect(run.steps.map(({ kind }) => kind)).toEqual(['prompt', 'assistant', 'intent', 'result']);
      expect(run.reset).toBeNull();
      run.writer.emit(textDelta('second'));
      return 'first second';
    };
    await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('x'));
    await begun.opened;
    await fixture.server.flush();
    await eventually(async () => {
      await fixture.reconciler.reconcile();
      return fixture.started.length === 2;
    });
    const events = parse(await fixture.read(scope, turnId));
    const types = ['session', 'text_reset', 'text_delta', 'tool_call_start', 'tool_call_end', 'tool_result', 'text_delta', 'done'];
    expect(events.map(({ type }) => type)).toEqual(types);
    expect(events[1]?.data).toEqual({ reason: 'stream_lost' });
    expect(await fixture.streams.fold(scope, turnId, AbortSignal.timeout(120_000))).toMatchObject({
      kind: 'done',
      reply: { reply: 'first second', toolCalls: [{ id: 'c1', output: 'Kept.' }] },
    });
  });
});

describe('a Redis that came back empty', () => {
  it('is filled again by another when the one that began it died, and no turn loses its journal meanwhile', async () => {
    const scope = await fixture.scope();
    const { seen, begun } = interrupted();
    await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('x'));
    await begun.opened;
    await fixture.server.flush();
    const redis = fixture.server.client();
    await redis.set(keyOf.restoreLock, Number.MAX_SAFE_INTEGER, 'PX', 600_000);
    await fixture.reconciler.reconcile();
    expect(await redis.exists(keyOf.turn(turnId))).toBe(0);
    await redis.pexpire(keyOf.restoreLock, 1);
    await eventually(async () => {
      await fixture.reconciler.reconcile();
      return seen.length === 2;
    });
    expect(seen).toEqual([0, 4]);
    redis.disconnect();
  });

  it('or has lost a part: a turn without a lane goes on after its journal', async () => {
    const scope = await fixture.scope();
    const { seen, begun } = interrupted();
    await fixture.worker();
    await fixture.turns.accept(scope, input('x'));
    await begun.opened;
    const redis = fixture.server.client();
    await redis.multi().flushall().set(keyOf.enqueued, '1').exec();
    await eventually(async () => {
      await fixture.reconciler.reconcile();
      return seen.length === 2;
    });
    expect(seen).toEqual([0, 4]);
    redis.disconnect();
  });
});

describe('a turn that was published, but not announced', () => {
  it('is replayed as it was published, when its readers had seen other text', async () => {
    const scope = await fixture.scope();
    fixture.play = async (run) => {
      run.writer.emit(textDelta('what was never publ'));
      await run.writer.flush();
      await fixture.publish(run, 'what was published');
      throw new Error('died before it was announced');
    };
    await fixture.worker();
    fixture.reconciler.start();
    const { turnId } = await fixture.turns.accept(scope, input('x'));
    const events = parse(await fixture.read(scope, turnId));
    expect(events.map(({ type }) => type)).toEqual(['session', 'text_delta', 'text_reset', 'text_delta', 'done']);
    expect(events[3]?.data).toEqual({ delta: 'what was published' });
  });

  it('is only announced when its readers have it all', async () => {
    const scope = await fixture.scope();
    // A reader that hears nothing for some seconds gets the turn from its session instead, from its beginning.
    jest.spyOn(TurnFollower.prototype, 'checkSilence').mockImplementation(() => undefined);
    fixture.play = async (run) => {
      run.writer.emit(textDelta('all of it'));
      await run.writer.flush();
      await fixture.publish(run, 'all of it');
      throw new Error('died before it was announced');
    };
    await fixture.worker();
    fixture.reconciler.start();
    const { turnId } = await fixture.turns.accept(scope, input('x'));
    expect(parse(await fixture.read(scope, turnId)).map(({ type }) => type)).toEqual(['session', 'text_delta', 'done']);
  });
});

describe('a contact_id while Redis is being filled again', () => {
  it('is not refused as unknown: its first turn may wait in the inbox', async () => {
    const scope = await fixture.scope();
    const { sessionId } = await fixture.turns.accept(scope, input('x', { sender: null }));
    await fixture.server.flush();
    const next = input('y', { sender: null, contactId: sessionId });
    await expect(fixture.turns.accept(scope, next)).rejects.toMatchObject({ code: 'overloaded' });
    await fixture.reconciler.reconcile();
    const redis = fixture.server.client();
    await eventually(async () => (await redis.exists(keyOf.enqueued)) === 1);
    redis.disconnect();
    expect(await fixture.turns.accept(scope, next)).toMatchObject({ sessionId, replayed: false });
    await expect(fixture.turns.accept(scope, input('z', { sender: null, contactId: 'f'.repeat(32) }))).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});
