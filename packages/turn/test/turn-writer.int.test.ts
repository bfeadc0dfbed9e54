import { promisify } from 'node:util';
import { expect, it, jest } from '@jest/globals';
import { createLog } from '@concierge/runtime';
import { setUpOnce } from '@concierge/testing/set-up';
import { keyOf } from '../src/keys.ts';
import { firstEntryId, readEntries } from '../src/streams/stream-entry.ts';
import { TurnWriter } from '../src/streams/turn-writer.ts';
import { enqueuedTurn, TestLanes } from './test-lanes.ts';
import { holdClock } from './test-turns.ts';

/** Not a timer: everything else of this round of the event loop has run. */
const nextRound = promisify(setImmediate);

let fixture: TestLanes;

setUpOnce(async (stack) => {
  fixture = stack.use(await TestLanes.start());
  await fixture.empty();
});

async function leasedWriter(sessionId: string): Promise<{ readonly writer: TurnWriter; readonly turnId: string }> {
  const turn = enqueuedTurn(sessionId);
  await fixture.place(turn);
  const lease = await fixture.take(sessionId);
  const writer = new TurnWriter({
    lanes: fixture.lanes,
    lease,
    inbox: { appendJournal: async () => Promise.resolve() },
    past: { steps: [], persisted: 0, lastPublicId: firstEntryId, openCalls: new Set(), entries: null },
    stop: new AbortController(),
    worker: { turnsRunning: () => 1, onProgress: () => undefined, streamBytes: { add: () => undefined } },
    log: createLog({ service: 'test', level: 'silent' }),
  });
  return { writer, turnId: turn.turnId };
}

it('a turn’s end never overtakes text that is being written', async () => {
  const { writer, turnId } = await leasedWriter('s1');
  writer.emit({ type: 'text_delta', data: { delta: 'the last words' } });
  const flushed = writer.flush();
  const data = { inputTokens: 1, outputTokens: 1, finishReason: 'stop' } as const;
  const finished = writer.finish({ type: 'done', data }, { state: 'done' });
  await Promise.all([flushed, finished]);
  const entries = await readEntries(fixture.redis, turnId, null);
  expect(entries.map(({ type }) => type)).toEqual(['session', 'text_delta', 'done']);
});

it('writes the first text of a turn without a timer, and gathers what follows', async () => {
  const { writer, turnId } = await leasedWriter('s2');
  // The time since the first write would pass on a slow machine, and then no timer is needed.
  const clock = holdClock();
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'clearImmediate', 'nextTick', 'performance', 'queueMicrotask', 'Date', 'hrtime'] });
  try {
    writer.emit({ type: 'text_delta', data: { delta: 'one ' } });
    writer.emit({ type: 'text_delta', data: { delta: 'two ' } });
    for (let round = 0; round < 10_000 && (await fixture.redis.xlen(keyOf.events(turnId))) < 2; round += 1) await nextRound();
    // Redis has the text before the writer has its answer: only then is a write over.
    await writer.flush();
    // Tests of other files may have left timers in this process that begin anew meanwhile.
    const others = jest.getTimerCount();
    for (const delta of ['three ', 'four ']) writer.emit({ type: 'text_delta', data: { delta } });
    expect(jest.getTimerCount() - others).toBe(1);
    await nextRound();
  } finally {
    jest.useRealTimers();
    clock.release();
  }
  await writer.flush();
  const entries = await readEntries(fixture.redis, turnId, null);
  expect(entries.slice(1).map(({ json }) => json)).toEqual(['{"delta":"one two "}', '{"delta":"three four "}']);
});
