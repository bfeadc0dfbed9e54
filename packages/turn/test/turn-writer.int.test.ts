import { expect, it } from '@jest/globals';
import { createLog } from '@concierge/runtime';
import { setUpOnce } from '@concierge/testing/set-up';
import { firstEntryId, readEntries } from '../src/streams/stream-entry.ts';
import { TurnWriter } from '../src/streams/turn-writer.ts';
import { enqueuedTurn, TestLanes } from './test-lanes.ts';

let stage: TestLanes;

setUpOnce(async (stack) => {
  stage = stack.use(await TestLanes.start());
  await stage.empty();
});

async function leasedWriter(sessionId: string): Promise<{ readonly writer: TurnWriter; readonly turnId: string }> {
  const turn = enqueuedTurn(sessionId);
  await stage.place(turn);
  const lease = await stage.take(sessionId);
  const writer = new TurnWriter({
    lanes: stage.lanes,
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
  const entries = await readEntries(stage.redis, turnId, null);
  expect(entries.map(({ type }) => type)).toEqual(['session', 'text_delta', 'done']);
});
