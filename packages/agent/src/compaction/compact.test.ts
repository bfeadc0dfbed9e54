import { describe, expect, it } from '@jest/globals';
import type { SessionMessage } from '@concierge/contract';
import { emptySession, userMessage } from '../fixtures/loop-fixture.ts';
import { RecordedWriter } from '../fixtures/recorded-writer.ts';
import { ending, modelUsage, say, ScriptedReplies } from '../fixtures/scripted-replies.ts';
import { Conversation, type ConversationStart } from '../loop/conversation.ts';
import { modelMessages, sessionBounds, type ContextBudget } from '../loop/model-messages.ts';
import { usedTokens } from './plan-compaction.ts';
import { compact, type CompactionRun } from './compact.ts';

/** A token per character makes the arithmetic of these tests readable. */
const buildBudget = (limitTokens: number): ContextBudget => ({
  limitTokens,
  overheadCharacters: () => 100,
  overheadTokens: () => 100,
  estimateTokens: (text) => text.length,
});

const at = '2026-11-20T10:00:00.000Z';

/** One exchange: a question, a call with a result of `resultLength`, and the answer. */
function exchange(number: number, resultLength: number): SessionMessage[] {
  const turnId = `old${String(number)}`;
  const callId = `c${String(number)}`;
  return [
    userMessage(`question ${String(number)}`, turnId),
    { id: `${turnId}.1`, turnId, at, role: 'assistant', text: '', toolCalls: [{ id: callId, name: 'look', arguments: '{}' }] },
    { id: `${turnId}.1.1`, turnId, at, role: 'tool', callId, name: 'look', output: 'x'.repeat(resultLength), isError: false },
    { id: `${turnId}.2`, turnId, at, role: 'assistant', text: `answer ${String(number)}` },
  ];
}

function sessionWith(exchanges: number, resultLength: number): ConversationStart {
  const messages = Array.from({ length: exchanges }, (_, index) => exchange(index + 1, resultLength)).flat();
  return { ...emptySession, messages, messageCount: messages.length };
}

interface Setup extends CompactionRun {
  readonly writer: RecordedWriter;
  readonly fallbacks: unknown[];
}

function setUp(
  session: ConversationStart,
  limitTokens: number,
  replies: ConstructorParameters<typeof ScriptedReplies>[0] = [],
): Setup & { model: ScriptedReplies } {
  const conversation = new Conversation(session, 't1');
  conversation.apply({ kind: 'prompt', message: userMessage('and now?') });
  const fallbacks: unknown[] = [];
  return {
    conversation,
    model: new ScriptedReplies(replies),
    budget: buildBudget(limitTokens),
    writer: new RecordedWriter(),
    signal: new AbortController().signal,
    fallbacks,
    onFallback: (error) => fallbacks.push(error),
  };
}

const listIds = (messages: readonly { id: string }[]): string[] => messages.map(({ id }) => id);
const archivedIds = (conversation: Conversation): string[] =>
  conversation.archived.flatMap((line) => (line.kind === 'message' ? [line.message.id] : []));

function expectPaired(messages: readonly SessionMessage[]): void {
  const calls = messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []).map(({ id }) => id) : []));
  const answered = messages.flatMap((message) => (message.role === 'tool' ? [message.callId] : []));
  expect(answered).toEqual(calls);
}

/** Rounds of the present turn: a call of 500 characters and its result of 200. */
function applyRounds(conversation: Conversation, first: number, last: number): void {
  for (let round = first; round <= last; round += 1) {
    const call = { id: `c${String(round)}`, name: 'look', arguments: 'y'.repeat(500) };
    conversation.apply({
      kind: 'assistant',
      message: { id: `t1.${String(round)}`, turnId: 't1', at, role: 'assistant', text: '', toolCalls: [call] },
      finishReason: 'tool_calls',
      usage: modelUsage(0, 0),
      startedAtMs: 0,
      firstTextAtMs: null,
      durationMs: 0,
    });
    const message = {
      id: `t1.${String(round)}.1`,
      turnId: 't1',
      at,
      role: 'tool',
      callId: call.id,
      name: 'look',
      output: 'z'.repeat(200),
      isError: false,
    } as const;
    conversation.apply({ kind: 'result', message, startedAtMs: 0, durationMs: 0 });
  }
}

describe('compaction', () => {
  it('leaves a conversation alone that fits', async () => {
    const run = setUp(sessionWith(3, 100), 100_000);
    await expect(compact(run, 'due')).resolves.toBe(false);
    expect(run.writer.journal).toEqual([]);
  });

  it('believes the provider’s count and estimates only what came after it', () => {
    const session = { ...sessionWith(2, 100), contextTokens: { tokens: 5000, messages: 8 } };
    const { conversation, budget } = setUp(session, 100_000);
    expect(usedTokens(conversation, budget)).toBe(5000 + 6 + 'and now?'.length);
  });

  it('prunes old tool results first and asks no model when that is enough', async () => {
    const run = setUp(sessionWith(10, 2000), 15_000);
    await expect(compact(run, 'due')).resolves.toBe(true);
    expect(run.model.requests).toEqual([]);
    expect(run.conversation.messages).toHaveLength(41);
    expect(run.conversation.archived).toEqual([]);
    const sent = modelMessages(run.conversation, new Map()).flatMap((message) => (message.role === 'tool' ? [message.output] : []));
    expect(sent.filter((output) => output.startsWith('[An earlier result of 2000 characters'))).toHaveLength(9);
    expect(sent.at(-1)).toBe('x'.repeat(2000));
    // The session keeps what the model is no longer sent.
    expect(run.conversation.messages[2]).toMatchObject({ output: 'x'.repeat(2000), pruned: true });
    expect(usedTokens(run.conversation, run.budget)).toBeLessThan(9000);
  });

  it('summarises the oldest exchanges, keeps the last ones whole and moves the originals out', async () => {
    const session = sessionWith(200, 40);
    const run = setUp(session, 12_000, [say('## Goals\n- g')]);
    await expect(compact(run, 'due')).resolves.toBe(true);
    expect(run.conversation.summary).toMatchObject({ text: '## Goals\n- g' });
    expect(run.conversation.messages[0]?.role).toBe('user');
    expectPaired(run.conversation.messages);
    expect([...archivedIds(run.conversation), ...listIds(run.conversation.messages)]).toEqual([...listIds(session.messages), 't1.0']);
    expect(run.conversation.summary?.messages).toBe(run.conversation.archived.length);
    expect(run.conversation.messageCount).toBe(801);
    expect(usedTokens(run.conversation, run.budget)).toBeLessThan(6000);
    expect(run.writer.journal).toHaveLength(1);
    expect(run.conversation.tally.usage).toEqual({ inputTokens: 100, outputTokens: 10 });
  });

  it('hands the summary so far to the next one and counts what it stands for', async () => {
    const before = { text: 'earlier: the user likes tea', messages: 7, updatedAt: at };
    const run = setUp({ ...sessionWith(200, 40), summary: before }, 12_000, [say('both')]);
    await compact(run, 'due');
    expect(JSON.stringify(run.model.requests[0]?.messages)).toContain('the user likes tea');
    expect(run.conversation.summary?.messages).toBe(7 + run.conversation.archived.length);
  });

  it.each([
    ['the call fails', new Error('no model')],
    ['the summary is empty', say('')],
    ['the reply just stops', []],
  ])('keeps the user’s own words when %s, and loses no message', async (_case, reply) => {
    const session = sessionWith(200, 40);
    const run = setUp(session, 12_000, [reply]);
    await expect(compact(run, 'due')).resolves.toBe(true);
    expect(run.fallbacks).toHaveLength(1);
    expect(run.conversation.summary?.text).toContain('- question 1');
    expect([...archivedIds(run.conversation), ...listIds(run.conversation.messages)]).toEqual([...listIds(session.messages), 't1.0']);
  });

  it('stops when the turn is stopped instead of falling back', async () => {
    const stop = new AbortController();
    const run = setUp(sessionWith(200, 40), 12_000, [
      // eslint-disable-next-line require-yield -- it is stopped before it says anything
      async function* () {
        stop.abort(new Error('draining'));
        await Promise.reject(new Error('aborted'));
      },
    ]);
    await expect(compact({ ...run, signal: stop.signal }, 'due')).rejects.toThrow('draining');
    expect(run.fallbacks).toEqual([]);
    expect(run.writer.journal).toEqual([]);
  });

  it('cuts inside the last exchange when that alone is too long, and keeps the request word for word', async () => {
    const run = setUp(emptySession, 5000, [say('so far')]);
    applyRounds(run.conversation, 1, 12);
    const budget = { ...run.budget, limitTokens: 8000 };
    await expect(compact({ ...run, budget }, 'due')).resolves.toBe(true);
    expect(run.conversation.messages[0]?.role).toBe('assistant');
    expectPaired(run.conversation.messages);
    expect(run.conversation.summary?.text).toContain('## The request being worked on, word for word\nand now?');
  });

  it.each([
    ['', 'later', say('later')],
    [', also when no model can summarise it', 'No model could summarise this part.', new Error('no model')],
  ])('keeps the request word for word when the same turn is cut once more%s', async (_case, beginning, reply) => {
    const run = setUp(emptySession, 8000, [say('so far'), reply]);
    applyRounds(run.conversation, 1, 12);
    await expect(compact(run, 'due')).resolves.toBe(true);
    applyRounds(run.conversation, 13, 24);
    await expect(compact(run, 'due')).resolves.toBe(true);
    const text = run.conversation.summary?.text ?? '';
    expect(text.startsWith(beginning)).toBe(true);
    expect(text.endsWith('\n\n## The request being worked on, word for word\nand now?')).toBe(true);
  });

  it('keeps a session file short even where the model could take more, once per turn', async () => {
    const run = setUp(sessionWith(sessionBounds.maxMessages / 4, 10), 10_000_000, [say('short')]);
    await expect(compact(run, 'due')).resolves.toBe(true);
    expect(run.conversation.messages.length).toBeLessThanOrEqual(sessionBounds.keepMessages);
    expect(run.conversation.messages[0]?.role).toBe('user');
    await expect(compact(run, 'due')).resolves.toBe(false);
  });

  it('makes even recent results smaller after an overflow, and gives up when nothing is left', async () => {
    const run = setUp(sessionWith(1, 6000), 100_000);
    await expect(compact(run, 'overflowed')).resolves.toBe(true);
    expect(run.conversation.messages[2]).toMatchObject({ pruned: true });
    const bare = setUp(emptySession, 100_000);
    await expect(compact(bare, 'overflowed')).resolves.toBe(false);
  });

  it('leaves one copy of HEARTBEAT, the newest, and counts the older ones as nothing', async () => {
    const session = sessionWith(40, 700);
    const shownAt = new Map([
      [4, 'first'],
      [100, 'second'],
      [156, 'third'],
    ]);
    const messages = session.messages.map((message, place) => {
      const heartbeat = shownAt.get(place);
      return message.role === 'user' && heartbeat !== undefined
        ? { ...message, sent: `<context>\nnow\n</context>\n\n${message.text}`, heartbeat }
        : message;
    });
    const run = setUp({ ...session, messages }, 20_000, [say('sum')]);
    await compact(run, 'due');
    const sent = JSON.stringify(modelMessages(run.conversation, new Map()));
    expect(sent.match(/<heartbeat>\\n\w+/gu)).toEqual(['<heartbeat>\\nthird']);
    expect(run.conversation.heartbeat).toBe('third');
  });

  it('shows HEARTBEAT with the summary when the message that showed it was cut off', async () => {
    const session = sessionWith(200, 40);
    const [first, ...rest] = session.messages;
    if (first?.role !== 'user') throw new Error('the session begins with another message');
    const run = setUp({ ...session, messages: [{ ...first, heartbeat: 'feed the cat' }, ...rest] }, 12_000, [say('sum'), say('sum again')]);
    await compact(run, 'due');
    expect(run.conversation.messages.some((message) => message.role === 'user' && message.heartbeat !== undefined)).toBe(false);
    expect(JSON.stringify(modelMessages(run.conversation, new Map())[0])).toContain('<heartbeat>\\nfeed the cat\\n</heartbeat>');
    expect(run.conversation.heartbeat).toBe('feed the cat');
    await compact(run, 'overflowed');
    expect(run.conversation.heartbeat).toBe('feed the cat');
  });

  it('is applied again from the journal to the same end', async () => {
    const session = sessionWith(200, 700);
    const run = setUp(session, 60_000, [say('sum')]);
    await compact(run, 'due');
    const again = new Conversation(session, 't1');
    again.apply({ kind: 'prompt', message: userMessage('and now?') });
    for (const step of structuredClone(run.writer.journal)) again.apply(step);
    expect(again.messages).toEqual(run.conversation.messages);
    expect(again.archived).toEqual(run.conversation.archived);
    expect(again.summary).toEqual(run.conversation.summary);
  });

  it('does not show tool results of any length to the summariser', async () => {
    const run = setUp(sessionWith(sessionBounds.maxMessages / 4, 5000), 10_000_000, [[ending({ text: 'sum' })]]);
    await compact(run, 'due');
    const summarised = run.conversation.archived.length / 4;
    expect(JSON.stringify(run.model.requests[0]).length).toBeLessThan(summarised * 2000);
  });
});
