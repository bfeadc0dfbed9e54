import { describe, expect, it } from '@jest/globals';
import { HOUR_MS, type Session, type TurnInput } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { eventually, say, type ScriptedModel, type System } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Turns } from '@concierge/turn';
import { contactWrites, TestSystem } from './test-system.ts';

const SOON_MS = 50;

let model: ScriptedModel;
let system: System;
let scope: TenantScope;
let turns: Turns;

setUpOnce(async (stack) => {
  // Messages are accepted here, as a gateway accepts them.
  const whole = stack.use(await TestSystem.start({ gateways: 0 }));
  ({ system, model } = whole);
  ({ scope } = await whole.tenant());
  turns = await whole.openTurns();
});

/** Without an address: nothing is delivered. */
function message(sender: string, text: string, debounceMs: number): TurnInput {
  const { channelMessage: _, ...input } = contactWrites(sender, text, { busy: 'collect', debounceMs });
  return input;
}

const words = ['one', 'two', 'three', 'four', 'five'];

/** Five messages of one contact, which wait for one another. @returns their turns, and the session */
async function sendAll(sender: string): Promise<{ turnIds: string[]; sessionId: string }> {
  const turnIds: string[] = [];
  let sessionId = '';
  for (const word of words) {
    const receipt = await turns.accept(scope, message(sender, `${sender} ${word}`, word === 'five' ? SOON_MS : HOUR_MS));
    turnIds.push(receipt.turnId);
    ({ sessionId } = receipt);
  }
  return { turnIds, sessionId };
}

/** The session when nothing waits any more. */
async function atRest(sessionId: string): Promise<Session | undefined> {
  await eventually(async () => (await scope.inbox.turnIds()).length === 0);
  return scope.sessions.load(sessionId);
}

function expectOneAnswer(sender: string, session: Session | undefined, turnIds: readonly string[]): void {
  expect(session?.messages).toMatchObject([
    { role: 'user', text: words.map((word) => `${sender} ${word}`).join('\n\n') },
    { role: 'assistant', text: 'one answer' },
  ]);
  const [head] = turnIds;
  expect(session?.turns.map(({ id, status, joinedTo }) => ({ id, status, joinedTo }))).toEqual(
    turnIds.map((id) => ({ id, status: 'done', joinedTo: id === head ? undefined : head })),
  );
}

describe('five quick messages', () => {
  it('get one answer, and each of them can be looked up', async () => {
    model.when('calm one', [say('one answer')]);
    const sent = await sendAll('calm');
    expectOneAnswer('calm', await atRest(sent.sessionId), sent.turnIds);
    const [head, ...joined] = sent.turnIds;
    for (const turnId of joined)
      expect(await turns.find(scope, turnId)).toMatchObject({ status: 'done', joinedTo: head, usage: { inputTokens: 0, outputTokens: 0 } });
    // On a busy machine the index is behind the answer.
    const { items } = await eventually(async () => {
      const found = await turns.list(scope, { limit: 25 });
      return found.items.length >= words.length ? found : undefined;
    });
    expect(items).toHaveLength(words.length);
    const again = await turns.accept(scope, message('calm', 'calm three', HOUR_MS));
    expect(again).toMatchObject({ turnId: sent.turnIds[2], replayed: true });
  });

  it.each(['model.after-reply:kill', 'session.after-link:kill', 'turn.after-save:kill', 'turn.after-save:kill:2', 'turn.after-done:kill'])(
    'get one answer when their worker dies: %s',
    async (failpoint) => {
      const sender = failpoint.replaceAll(/\W/gu, '-');
      model.when(`${sender} one`, [say('one answer')], [say('one answer')]);
      const [worker] = system.workers;
      await worker?.terminate();
      worker?.start({ FAILPOINT: failpoint });
      const sent = await sendAll(sender);
      await eventually(() => worker?.endedBy === 'SIGKILL');
      worker?.start();
      const session = await atRest(sent.sessionId);
      expect(session?.revision).toBe(1);
      expectOneAnswer(sender, session, sent.turnIds);
    },
  );
});

describe('a message that was answered', () => {
  it('is not answered again with an older one that an emptied Redis has put before it', async () => {
    model.when('swap second', [say('to the second')]);
    model.when('swap first', [say('to the first')]);
    const [worker] = system.workers;
    await worker?.terminate();
    const { sessionId, turnId } = await turns.accept(scope, message('swap', 'swap second', SOON_MS));
    const second = await scope.inbox.read(turnId);
    if (second === undefined) throw new Error('the turn was answered without a worker');
    worker?.start({ FAILPOINT: 'turn.after-done:kill' });
    await eventually(() => worker?.endedBy === 'SIGKILL');
    // The gateway of the older one died when it had a file and no lane yet.
    await scope.inbox.accept({ ...second, turnId: `${turnId}0`, text: 'swap first', acceptedAtMs: second.acceptedAtMs - 1000 });
    await system.redis.flush();
    worker?.start();
    const session = await atRest(sessionId);
    expect(session?.messages).toMatchObject([
      { role: 'user', text: 'swap second' },
      { role: 'assistant', text: 'to the second' },
      { role: 'user', text: 'swap first' },
      { role: 'assistant', text: 'to the first' },
    ]);
  });
});
