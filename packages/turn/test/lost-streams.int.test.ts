import { describe, expect, it, jest } from '@jest/globals';
import type { TenantScope } from '@concierge/tenant';
import { eventually, gate, untilAborted } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { readRendered, type TurnRun } from '../src/index.ts';
import { compareIds } from '../src/streams/stream-entry.ts';
import { input, parse, TestTurns, textDelta } from './test-turns.ts';

// A reader without messages reads the disk after some seconds; leases expire.
jest.setTimeout(60_000);

let rig: TestTurns;
let scope: TenantScope;

setUpEach(async (stack) => {
  rig = stack.use(await TestTurns.start());
  stack.defer(async () => rig.server.hasRoom());
  scope = await rig.scope();
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
  const folded = await rig.streams.fold(scope, turnId, AbortSignal.timeout(20_000));
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
    rig.play = async (run) => Promise.resolve(say(run, 0, 3));
    await rig.worker();
    const { turnId } = await rig.turns.accept(scope, input('tell'));
    await rig.read(scope, turnId);
    const replayed = '9007199254740991-2';
    expect(await rig.streams.isReadToEnd(scope, turnId, replayed)).toBe(false);
    expect(parse(await rig.read(scope, turnId, replayed)).map(({ type }) => type)).toEqual(['done']);
    expect(await rig.streams.isReadToEnd(scope, turnId, '9007199254740991-3')).toBe(true);
  });

  it('when Redis has no memory for a while in mid-sentence', async () => {
    rig.play = async (run) => {
      let said = say(run, 0, 14);
      await run.writer.flush();
      await rig.server.fill();
      said += say(run, 14, 37);
      const flushed = run.writer.flush();
      await rig.server.hasRoom();
      await flushed;
      return said + say(run, 37, 60);
    };
    await rig.worker();
    const { turnId, sessionId } = await rig.turns.accept(scope, input('count'));
    const asker = await rig.read(scope, turnId);
    const text = await saved(sessionId);
    expect(text).toContain('w13 w14');
    expect([heard(asker), heard(await rig.read(scope, turnId)), await reply(turnId)]).toEqual([text, text, text]);
  });

  it('when Redis has no memory for the end', async () => {
    rig.play = async (run) => {
      const said = say(run, 0, 5);
      await run.writer.flush();
      await rig.server.fill();
      return said + say(run, 5, 9);
    };
    await rig.worker();
    const { turnId, sessionId } = await rig.turns.accept(scope, input('count'));
    const asking = rig.read(scope, turnId);
    const text = await eventually(async () => await saved(sessionId));
    await rig.server.hasRoom();
    expect([heard(await asking), heard(await rig.read(scope, turnId)), await reply(turnId)]).toEqual([text, text, text]);
    expect(rig.started).toEqual([turnId]);
  });

  it('when Redis is killed before its last second is on disk, and the worker goes on', async () => {
    const cut = gate();
    const goOn = gate();
    rig.play = async (run) => {
      const said = say(run, 0, 10);
      await run.writer.flush();
      const written = await rig.server.written();
      const lost = say(run, 10, 20);
      await run.writer.flush();
      cut.open();
      await goOn.opened;
      await rig.server.losePower(written);
      return said + lost + say(run, 20, 30);
    };
    await rig.worker();
    const { turnId, sessionId } = await rig.turns.accept(scope, input('count'));
    const asking = rig.read(scope, turnId);
    await cut.opened;
    goOn.open();
    const asker = await asking;
    expectRising(asker);
    const text = await saved(sessionId);
    expect([heard(asker), heard(await rig.read(scope, turnId)), await reply(turnId)]).toEqual([text, text, text]);
    expect(rig.started).toEqual([turnId]);
  });

  it('when Redis has lost that the turn was ever started', async () => {
    const begun = gate();
    rig.play = async (run) => {
      if (rig.started.length > 1) return say(run, 0, 3);
      say(run, 0, 10);
      await run.writer.flush();
      begun.open();
      await untilAborted(run.signal);
      throw run.signal.reason;
    };
    const { turnId, sessionId } = await rig.turns.accept(scope, input('count'));
    const written = await rig.server.written();
    await rig.worker();
    const asking = rig.read(scope, turnId);
    await begun.opened;
    await rig.server.losePower(written);
    rig.reconciler.start();
    const asker = await asking;
    expectRising(asker);
    const text = await saved(sessionId);
    expect([heard(asker), heard(await rig.read(scope, turnId)), await reply(turnId)]).toEqual([text, text, text]);
  });
});

describe('a turn whose end Redis has lost', () => {
  async function loseEnd(): Promise<{ turnId: string; sessionId: string; words: string; lastHeard: string }> {
    let written = 0;
    rig.play = async (run) => {
      const said = say(run, 0, 10);
      await run.writer.flush();
      written = await rig.server.written();
      return said;
    };
    const worker = await rig.worker();
    const { turnId, sessionId } = await rig.turns.accept(scope, input('count', { dedupeId: 'once' }));
    const words = await rig.read(scope, turnId);
    await eventually(async () => (await scope.inbox.read(turnId)) === undefined);
    await worker.stop(0);
    await rig.server.losePower(written);
    return { turnId, sessionId, words: heard(words), lastHeard: parse(words).at(-2)?.id ?? '' };
  }

  it('is replayed from its session file, to early and late readers, and its request is answered again', async () => {
    const { turnId, words, lastHeard } = await loseEnd();
    const again = await eventually(async () => await rig.turns.accept(scope, input('count', { dedupeId: 'once' })));
    expect(again).toMatchObject({ turnId, replayed: true });
    const [late, resumed] = await Promise.all([rig.read(scope, turnId), rig.read(scope, turnId, lastHeard)]);
    expect(heard(late)).toBe(words);
    expect(parse(late).at(-1)?.type).toBe('done');
    expect(parse(resumed).map(({ type }) => type)).toEqual(['text_reset', 'text_delta', 'done']);
    expect(heard(resumed)).toBe(words);
    expect(await reply(turnId)).toBe(words);
    for (const { id } of parse(resumed)) expect(compareIds(id, lastHeard)).toBeGreaterThan(0);
  });

  it('is ended again by the next worker, which finds it in its lane and not in the inbox', async () => {
    const { turnId, sessionId, words } = await loseEnd();
    await rig.worker();
    rig.reconciler.start();
    const events = parse(await rig.read(scope, turnId));
    expect(events.at(-1)?.type).toBe('done');
    expect(await reply(turnId)).toBe(words);
    expect((await scope.sessions.load(sessionId))?.turns).toHaveLength(1);
    const next = await rig.turns.accept(scope, input('next'));
    expect(parse(await rig.read(scope, next.turnId)).at(-1)?.type).toBe('done');
  });
});

describe('a reader who resumes when the stream is gone', () => {
  it('gets a reset above all that it has seen, also of an attempt that was leased after the turn was saved', async () => {
    rig.play = async (run) => {
      await rig.publish(run, 'all of it');
      throw new Error('died before it was announced');
    };
    await rig.worker();
    rig.reconciler.start();
    const { turnId } = await rig.turns.accept(scope, input('x'));
    const seen = parse(await rig.read(scope, turnId)).at(-2)?.id ?? '';
    await eventually(async () => (await scope.inbox.read(turnId)) === undefined);
    await rig.server.flush();
    const [reset, ...told] = parse(await rig.read(scope, turnId, seen));
    expect(reset?.type).toBe('text_reset');
    expect(compareIds(reset?.id ?? '', seen)).toBeGreaterThan(0);
    expect(told.map(({ type }) => type)).toEqual(['text_delta', 'done']);
  });
});
