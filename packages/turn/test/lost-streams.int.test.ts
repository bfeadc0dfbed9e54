import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { TenantScope } from '@concierge/tenant';
import { eventually, gate, untilAborted } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { readRendered, type TurnRun } from '../src/index.ts';
import { compareIds } from '../src/streams/stream-entry.ts';
import { TurnFollower } from '../src/streams/turn-follower.ts';
import { input, parse, TestTurns, textDelta } from './test-turns.ts';

let fixture: TestTurns;
let scope: TenantScope;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
  stack.defer(async () => fixture.server.hasRoom());
  scope = await fixture.scope();
});

afterEach(() => {
  jest.restoreAllMocks();
});

function say(run: TurnRun, from: number, to: number): string {
  let said = '';
  for (let word = from; word < to; word += 1) {
    run.writer.emit(textDelta(`w${String(word)} `));
    said += `w${String(word)} `;
  }
  return said;
}

/** What a client shows after these events. */
function heard(sse: string): string {
  let text = '';
  for (const event of readRendered(sse)) {
    if (event.type === 'text_reset') text = '';
    if (event.type === 'text_delta') text += event.data.delta;
  }
  return text;
}

async function saved(sessionId: string): Promise<string | undefined> {
  const session = await scope.sessions.load(sessionId);
  return session?.messages.find((message) => message.role === 'assistant')?.text;
}

async function reply(turnId: string): Promise<string> {
  const folded = await fixture.streams.fold(scope, turnId, AbortSignal.timeout(120_000));
  if (folded.kind === 'error') throw new Error(folded.error.code);
  return folded.reply.reply;
}

function expectRising(sse: string): void {
  const ids = parse(sse).map(({ id }) => id);
  expect(ids).toEqual(ids.toSorted(compareIds));
  expect(new Set(ids).size).toBe(ids.length);
}

describe('every reader ends with the content of the session file', () => {
  it('when it was cut off in a replay, and the stream of the turn is whole by now', async () => {
    fixture.play = async (run) => Promise.resolve(say(run, 0, 3));
    await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('tell'));
    await fixture.read(scope, turnId);
    const replayed = '9007199254740991-2';
    expect(await fixture.streams.isReadToEnd(scope, turnId, replayed)).toBe(false);
    expect(parse(await fixture.read(scope, turnId, replayed)).map(({ type }) => type)).toEqual(['done']);
    expect(await fixture.streams.isReadToEnd(scope, turnId, '9007199254740991-3')).toBe(true);
  });

  it('when it has read a replay, and logs that are filed for an emptied Redis bring the inbox file back', async () => {
    const runs: TurnRun[] = [];
    fixture.play = async (run) => {
      runs.push(run);
      return Promise.resolve(say(run, 0, 3));
    };
    await fixture.worker();
    const { turnId } = await fixture.turns.accept(scope, input('tell'));
    await fixture.read(scope, turnId);
    await eventually(async () => (await scope.inbox.turnIds()).length === 0);
    for (const { turn } of runs) await scope.inbox.accept(turn);
    expect(await scope.inbox.hasFile(turnId)).toBe(true);
    expect(await fixture.streams.isReadToEnd(scope, turnId, '9007199254740991-3')).toBe(true);
  });

  it('when Redis has no memory for a while in mid-sentence', async () => {
    fixture.play = async (run) => {
      let said = say(run, 0, 14);
      await run.writer.flush();
      await fixture.server.fill();
      said += say(run, 14, 37);
      const flushed = run.writer.flush();
      await fixture.server.hasRoom();
      await flushed;
      return said + say(run, 37, 60);
    };
    await fixture.worker();
    const { turnId, sessionId } = await fixture.turns.accept(scope, input('count'));
    const asker = await fixture.read(scope, turnId);
    const text = await saved(sessionId);
    expect(text).toContain('w13 w14');
    expect([heard(asker), heard(await fixture.read(scope, turnId)), await reply(turnId)]).toEqual([text, text, text]);
  });

  it('when Redis has no memory for the end', async () => {
    fixture.play = async (run) => {
      const said = say(run, 0, 5);
      await run.writer.flush();
      await fixture.server.fill();
      return said + say(run, 5, 9);
    };
    await fixture.worker();
    const { turnId, sessionId } = await fixture.turns.accept(scope, input('count'));
    const asking = fixture.read(scope, turnId);
    const text = await eventually(async () => await saved(sessionId));
    await fixture.server.hasRoom();
    expect([heard(await asking), heard(await fixture.read(scope, turnId)), await reply(turnId)]).toEqual([text, text, text]);
    expect(fixture.started).toEqual([turnId]);
  });

  it('when Redis is killed before its last second is on disk, and the worker goes on', async () => {
    const cut = gate();
    const goOn = gate();
    fixture.play = async (run) => {
      const said = say(run, 0, 10);
      await run.writer.flush();
      const written = await fixture.server.written();
      const lost = say(run, 10, 20);
      await run.writer.flush();
      cut.open();
      await goOn.opened;
      await fixture.server.losePower(written);
      return said + lost + say(run, 20, 30);
    };
    await fixture.worker();
    const { turnId, sessionId } = await fixture.turns.accept(scope, input('count'));
    const asking = fixture.read(scope, turnId);
    await cut.opened;
    goOn.open();
    const asker = await asking;
    expectRising(asker);
    const text = await saved(sessionId);
    expect([heard(asker), heard(await fixture.read(scope, turnId)), await reply(turnId)]).toEqual([text, text, text]);
    expect(fixture.started).toEqual([turnId]);
  });

  it('when Redis has lost that the turn was ever started', async () => {
    const begun = gate();
    fixture.play = async (run) => {
      if (fixture.started.length > 1) return say(run, 0, 3);
      say(run, 0, 10);
      await run.writer.flush();
      begun.open();
      await untilAborted(run.signal);
      throw run.signal.reason;
    };
    const { turnId, sessionId } = await fixture.turns.accept(scope, input('count'));
    const written = await fixture.server.written();
    await fixture.worker();
    const asking = fixture.read(scope, turnId);
    await begun.opened;
    await fixture.server.losePower(written);
    fixture.reconciler.start();
    const asker = await asking;
    expectRising(asker);
    const text = await saved(sessionId);
    expect([heard(asker), heard(await fixture.read(scope, turnId)), await reply(turnId)]).toEqual([text, text, text]);
  });
});

describe('a turn whose end Redis has lost', () => {
  async function loseEnd(): Promise<{ turnId: string; sessionId: string; words: string; lastHeard: string }> {
    let written = 0;
    fixture.play = async (run) => {
      const said = say(run, 0, 10);
      await run.writer.flush();
      written = await fixture.server.written();
      return said;
    };
    const worker = await fixture.worker();
    const { turnId, sessionId } = await fixture.turns.accept(scope, input('count', { dedupeId: 'once' }));
    const words = await fixture.read(scope, turnId);
    await eventually(async () => (await scope.inbox.read(turnId)) === undefined);
    await fixture.logsAreSettled();
    await worker.stop(0);
    await fixture.server.losePower(written);
    return { turnId, sessionId, words: heard(words), lastHeard: parse(words).at(-2)?.id ?? '' };
  }

  it('is replayed from its session file, to early and late readers, and its request is answered again', async () => {
    const { turnId, words, lastHeard } = await loseEnd();
    const again = await eventually(async () => await fixture.turns.accept(scope, input('count', { dedupeId: 'once' })));
    expect(again).toMatchObject({ turnId, replayed: true });
    const [late, resumed] = await Promise.all([fixture.read(scope, turnId), fixture.read(scope, turnId, lastHeard)]);
    expect(heard(late)).toBe(words);
    expect(parse(late).at(-1)?.type).toBe('done');
    expect(parse(resumed).map(({ type }) => type)).toEqual(['text_reset', 'text_delta', 'done']);
    expect(heard(resumed)).toBe(words);
    expect(await reply(turnId)).toBe(words);
    for (const { id } of parse(resumed)) expect(compareIds(id, lastHeard)).toBeGreaterThan(0);
  });

  it('is ended again by the next worker, which finds it in its lane and not in the inbox', async () => {
    const { turnId, sessionId, words } = await loseEnd();
    await fixture.worker();
    fixture.reconciler.start();
    const events = parse(await fixture.read(scope, turnId));
    expect(events.at(-1)?.type).toBe('done');
    expect(await reply(turnId)).toBe(words);
    expect((await scope.sessions.load(sessionId))?.turns).toHaveLength(1);
    const next = await fixture.turns.accept(scope, input('next'));
    expect(parse(await fixture.read(scope, next.turnId)).at(-1)?.type).toBe('done');
  });
});

describe('a reader who resumes when the stream is gone', () => {
  it('gets a reset above all that it has seen, also of an attempt that was leased after the turn was saved', async () => {
    // A reader that hears nothing for some seconds gets the turn from its session, and ids of a replay.
    jest.spyOn(TurnFollower.prototype, 'checkSilence').mockImplementation(() => undefined);
    fixture.play = async (run) => {
      await fixture.publish(run, 'all of it');
      throw new Error('died before it was announced');
    };
    await fixture.worker();
    fixture.reconciler.start();
    const { turnId } = await fixture.turns.accept(scope, input('x'));
    const seen = parse(await fixture.read(scope, turnId)).at(-2)?.id ?? '';
    await eventually(async () => (await scope.inbox.read(turnId)) === undefined);
    await fixture.server.flush();
    const [reset, ...replayed] = parse(await fixture.read(scope, turnId, seen));
    expect(reset?.type).toBe('text_reset');
    expect(compareIds(reset?.id ?? '', seen)).toBeGreaterThan(0);
    expect(replayed.map(({ type }) => type)).toEqual(['text_delta', 'done']);
  });
});
