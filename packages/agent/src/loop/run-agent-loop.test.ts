import { describe, expect, it, afterEach, beforeEach, jest } from '@jest/globals';
import { limits, type TurnEvent, type ToolMessage, type TurnStep } from '@concierge/contract';
import { ModelError } from '@concierge/model';
import { HandlerTools, loopFixture, userMessage } from '../fixtures/loop-fixture.ts';
import { callTools, ending, modelUsage, say, ScriptedReplies, toolCall } from '../fixtures/scripted-replies.ts';
import { CallProgress } from '../tools/tool.ts';
import { OUTCOME_UNKNOWN, closeOpenCalls, runAgentLoop } from './run-agent-loop.ts';

const results = (messages: readonly { role: string }[]): ToolMessage[] =>
  messages.filter((message): message is ToolMessage => message.role === 'tool');

describe('the agent loop', () => {
  it('streams the answer, journals it and finishes with the model’s reason', async () => {
    const model = new ScriptedReplies([[{ type: 'text', delta: 'Hel' }, { type: 'text', delta: 'lo' }, ending({ text: 'Hello' })]]);
    const run = loopFixture({ model });
    await expect(runAgentLoop(run)).resolves.toBe('stop');
    expect(run.writer.log).toEqual(['text_delta', 'text_delta', 'step assistant']);
    expect(run.writer.text).toBe('Hello');
    expect(run.conversation.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(run.conversation.tally.usage).toEqual({ inputTokens: 100, outputTokens: 10 });
    expect(run.conversation.contextTokens).toEqual({ tokens: 110, messages: 2 });
    expect(model.requests[0]).toMatchObject({
      system: 'system',
      messages: [{ role: 'user', content: 'hello' }],
      conversationId: '0'.repeat(32),
    });
  });

  it('runs tools between replies and emits start, end and result of each call', async () => {
    const model = new ScriptedReplies([callTools(toolCall('c1', 'look', { at: 1 })), say('done')]);
    const run = loopFixture({ model, tools: new HandlerTools({ look: () => Promise.resolve('seen') }) });
    await expect(runAgentLoop(run)).resolves.toBe('stop');
    expect(run.writer.log).toEqual([
      'step assistant',
      'step intent',
      'tool_call_start',
      'step result',
      'tool_call_end',
      'tool_result',
      'text_delta',
      'step assistant',
    ]);
    expect(run.writer.events[0]).toEqual({ type: 'tool_call_start', data: { id: 'c1', name: 'look', input: { at: 1 } } });
    expect(run.writer.events[2]).toEqual({ type: 'tool_result', data: { id: 'c1', name: 'look', output: 'seen', isError: false } });
    expect(model.requests[1]?.messages.slice(1)).toEqual([
      { role: 'assistant', text: '', toolCalls: [toolCall('c1', 'look', { at: 1 })], model: 'test/model' },
      { role: 'tool', callId: 'c1', output: 'seen' },
    ]);
  });

  it('puts intent and result of a side effect on disk around the call', async () => {
    const run = loopFixture({
      model: new ScriptedReplies([callTools(toolCall('c1', 'write')), say('done')]),
      tools: new HandlerTools({ write: () => Promise.resolve('ok') }),
    });
    await runAgentLoop(run);
    expect(run.writer.log.slice(0, 8)).toEqual([
      'step assistant',
      'step intent',
      'tool_call_start',
      'persist',
      'step result',
      'tool_call_end',
      'tool_result',
      'persist',
    ]);
  });

  it('puts a call that takes up what it began on disk before it runs, beside others that run', async () => {
    const both = Promise.withResolvers<void>();
    let running = 0;
    const resume = async (): Promise<string> => {
      running += 1;
      if (running === 2) both.resolve();
      await both.promise;
      return 'done';
    };
    const run = loopFixture({
      model: new ScriptedReplies([callTools(toolCall('a', 'resume'), toolCall('b', 'resume')), say('done')]),
      tools: new HandlerTools({
        resume: async () => {
          expect(run.writer.journal.slice(0, run.writer.persisted)).toContainEqual(expect.objectContaining({ kind: 'assistant' }));
          return resume();
        },
      }),
    });
    await runAgentLoop(run);
    expect(results(run.conversation.messages).map(({ output }) => output)).toEqual(['done', 'done']);
  });

  it('runs read-only calls together and gives their results in call order', async () => {
    const second = Promise.withResolvers<undefined>();
    const tools = new HandlerTools({
      first: async () => {
        await second.promise;
        return 'one';
      },
      second: () => {
        second.resolve(undefined);
        return Promise.resolve('two');
      },
    });
    const model = new ScriptedReplies([callTools(toolCall('a', 'first'), toolCall('b', 'second')), say('done')]);
    const run = loopFixture({ model, tools });
    await runAgentLoop(run);
    expect(results(run.conversation.messages).map(({ output }) => output)).toEqual(['one', 'two']);
    expect(run.writer.events.filter(({ type }) => type === 'tool_result').map(({ data }) => data)).toMatchObject([
      { id: 'b' },
      { id: 'a' },
    ]);
  });

  it('runs side effects one after another, in call order, apart from everything else', async () => {
    let inside = 0;
    const seen: string[] = [];
    const handler = (name: string) => async (): Promise<string> => {
      inside += 1;
      seen.push(`${name} beside ${String(inside - 1)}`);
      await Promise.resolve();
      inside -= 1;
      return name;
    };
    const tools = new HandlerTools({ write_a: handler('write_a'), write_b: handler('write_b'), look: handler('look') });
    const calls = [toolCall('1', 'write_a'), toolCall('2', 'look'), toolCall('3', 'write_b')];
    await runAgentLoop(loopFixture({ model: new ScriptedReplies([callTools(...calls), say('done')]), tools }));
    expect(seen).toEqual(['write_a beside 0', 'look beside 0', 'write_b beside 0']);
  });

  it('answers the user with one last call without tools when maxTurns is reached', async () => {
    const tools = new HandlerTools({ look: () => Promise.resolve('seen') });
    const model = new ScriptedReplies([callTools(toolCall('a', 'look')), callTools(toolCall('b', 'look')), say('what I have')]);
    const run = loopFixture({ model, tools, maxTurns: 2 });
    await expect(runAgentLoop(run)).resolves.toBe('max_turns');
    expect(model.requests.map((request) => request.tools.length)).toEqual([1, 1, 0]);
  });

  it('does not take tool calls of the last call, which was offered none', async () => {
    const model = new ScriptedReplies([callTools(toolCall('a', 'look')), [ending({ text: 'x', toolCalls: [toolCall('b', 'look')] })]]);
    const tools = new HandlerTools({ look: () => Promise.resolve('seen') });
    await expect(runAgentLoop(loopFixture({ model, tools, maxTurns: 1 }))).resolves.toBe('max_turns');
    expect(tools.ran).toEqual(['a']);
  });

  it('never runs tool calls of a reply that was cut by length', async () => {
    const tools = new HandlerTools({ look: () => Promise.resolve('seen') });
    const run = loopFixture({
      model: new ScriptedReplies([[ending({ text: 'half', toolCalls: [toolCall('a', 'look')], finishReason: 'length' })]]),
      tools,
    });
    await expect(runAgentLoop(run)).resolves.toBe('length');
    expect(tools.ran).toEqual([]);
    expect(run.conversation.messages.at(-1)).not.toHaveProperty('toolCalls');
  });

  it('gives repeated call ids of a provider names of their own', async () => {
    const tools = new HandlerTools({ look: () => Promise.resolve('seen') });
    const model = new ScriptedReplies([
      callTools(toolCall('x', 'look'), toolCall('x', 'look')),
      callTools(toolCall('x', 'look')),
      say('done'),
    ]);
    const run = loopFixture({ model, tools });
    await runAgentLoop(run);
    expect(new Set(results(run.conversation.messages).map(({ callId }) => callId)).size).toBe(3);
    expect(results(run.conversation.messages)).toHaveLength(3);
  });

  it('takes bad JSON as a call with an empty input and leaves the answer to the tools', async () => {
    const run = loopFixture({ model: new ScriptedReplies([callTools({ id: 'a', name: 'look', arguments: '{"x":' }), say('sorry')]) });
    await runAgentLoop(run);
    expect(run.writer.events[0]).toMatchObject({ type: 'tool_call_start', data: { input: {} } });
    expect(results(run.conversation.messages)[0]).toMatchObject({ isError: true });
  });

  it('cuts a long result in the event and marks the cut, and keeps it whole for the model', async () => {
    const long = 'ä'.repeat(10_000);
    const run = loopFixture({
      model: new ScriptedReplies([callTools(toolCall('a', 'look')), say('done')]),
      tools: new HandlerTools({ look: () => Promise.resolve(long) }),
    });
    await runAgentLoop(run);
    expect(run.writer.events.find(({ type }) => type === 'tool_result')).toMatchObject({
      data: { output: 'ä'.repeat(8192), truncated: true },
    });
    expect(results(run.conversation.messages)[0]?.output).toBe(long);
  });

  it('passes on that the text so far is void', async () => {
    const reply = [{ type: 'text', delta: 'Hm' } as const, { type: 'reset', reason: 'fallback_model' } as const, ...say('Well')];
    const run = loopFixture({ model: new ScriptedReplies([reply]) });
    await runAgentLoop(run);
    expect(run.writer.log).toEqual(['text_delta', 'text_reset', 'text_delta', 'step assistant']);
    expect(run.conversation.messages.at(-1)).toMatchObject({ text: 'Well' });
  });

  it('makes room once when the provider finds the context too long', async () => {
    const overflow = new ModelError('context_overflow', 'too long');
    const reasons: string[] = [];
    const compact = (reason: string): Promise<boolean> => {
      reasons.push(reason);
      return Promise.resolve(reason === 'overflowed');
    };
    await expect(runAgentLoop(loopFixture({ model: new ScriptedReplies([overflow, say('ok')]), run: { compact } }))).resolves.toBe('stop');
    expect(reasons).toEqual(['due', 'overflowed']);
    await expect(
      runAgentLoop(loopFixture({ model: new ScriptedReplies([overflow, overflow, say('never')]), run: { compact } })),
    ).rejects.toBe(overflow);
  });

  it('is an error of the provider when a reply just stops', async () => {
    const run = loopFixture({ model: new ScriptedReplies([[{ type: 'text', delta: 'I was' }]]) });
    await expect(runAgentLoop(run)).rejects.toMatchObject({ code: 'provider_error' });
  });

  it('emits no more once it is stopped, and keeps the text so far', async () => {
    const stop = new AbortController();
    const model = new ScriptedReplies([
      async function* (_request, signal) {
        yield { type: 'text', delta: 'I was about to' };
        stop.abort(new Error('cancelled'));
        await Promise.resolve();
        signal.throwIfAborted();
      },
    ]);
    const run = loopFixture({ model, run: { signal: stop.signal } });
    await expect(runAgentLoop(run)).rejects.toThrow('cancelled');
    closeOpenCalls(run, 'Stopped.');
    expect(run.conversation.messages.at(-1)).toMatchObject({ role: 'assistant', text: 'I was about to', partial: true });
    expect(run.conversation.messageCount).toBe(2);
  });

  it('closes a running call when it is broken off, in the conversation and for the reader', async () => {
    const stop = new AbortController();
    const tools = new HandlerTools({
      look: () => Promise.resolve('seen'),
      write: (_input, signal) => {
        stop.abort(new Error('cancelled'));
        return Promise.reject<string>(signal.reason);
      },
    });
    const calls = [toolCall('a', 'look'), toolCall('b', 'write'), toolCall('c', 'look')];
    const run = loopFixture({ model: new ScriptedReplies([callTools(...calls)]), tools, run: { signal: stop.signal } });
    await expect(runAgentLoop(run)).rejects.toThrow('cancelled');
    closeOpenCalls(run, 'Stopped.');
    expect(results(run.conversation.messages).map(({ callId, output }) => [callId, output])).toEqual([
      ['a', 'seen'],
      ['b', 'Stopped.'],
      ['c', 'Stopped.'],
    ]);
    const counts = (type: string): number => run.writer.events.filter((event) => event.type === type).length;
    expect([counts('tool_call_start'), counts('tool_call_end'), counts('tool_result')]).toEqual([2, 2, 2]);
  });
});

describe('an attempt after a crash', () => {
  const prompt: TurnStep = { kind: 'prompt', message: userMessage('hello') };

  /** A whole turn with a read-only and a side-effecting call, and its journal. */
  async function wholeTurn(): Promise<TurnStep[]> {
    const model = new ScriptedReplies([callTools(toolCall('r', 'look'), toolCall('w', 'write')), say('done')]);
    const run = loopFixture({ model, tools: tools() });
    await runAgentLoop(run);
    return [prompt, ...run.writer.journal];
  }
  const tools = (): HandlerTools => new HandlerTools({ look: () => Promise.resolve('seen'), write: () => Promise.resolve('written') });

  it('goes on after every possible last step and never repeats a side effect', async () => {
    const journal = await wholeTurn();
    expect(journal.map(({ kind }) => kind)).toEqual(['prompt', 'assistant', 'intent', 'result', 'intent', 'result', 'assistant']);
    for (let kept = 1; kept <= journal.length; kept += 1) {
      const steps = journal.slice(0, kept);
      const replies = [callTools(toolCall('r', 'look'), toolCall('w', 'write')), say('done')].slice(
        steps.filter(({ kind }) => kind === 'assistant').length,
      );
      const run = loopFixture({ model: new ScriptedReplies(replies), tools: tools(), steps });
      await expect(runAgentLoop(run)).resolves.toBe('stop');
      expect(run.conversation.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
      const hadIntent = steps.some((step) => step.kind === 'intent' && step.callId === 'w');
      expect(run.tools.ran.includes('w')).toBe(!hadIntent);
      const written = results(run.conversation.messages).find(({ callId }) => callId === 'w');
      expect(written?.output).toBe(kept === 5 ? OUTCOME_UNKNOWN : 'written');
      expect(written?.isError).toBe(kept === 5);
      expect(run.conversation.tally.usage).toEqual({ inputTokens: 200, outputTokens: 20 });
    }
  });

  it('shows the model which tools an interrupted command had called, and how far those came', async () => {
    const journal = await wholeTurn();
    const call = { parentId: 'w', within: 'bash', startedAtMs: 1, durationMs: 1 };
    const nested: TurnStep[] = [
      { kind: 'nested_intent', callId: 'w/1', parentId: 'w', name: 'read' },
      { kind: 'nested_result', callId: 'w/1', name: 'read', isError: false, ...call },
      { kind: 'nested_intent', callId: 'w/2', parentId: 'w', name: 'bash' },
      { kind: 'nested_intent', callId: 'w/2/1', parentId: 'w/2', name: 'write' },
    ];
    const run = loopFixture({ model: new ScriptedReplies([say('done')]), tools: tools(), steps: [...journal.slice(0, 5), ...nested] });
    await runAgentLoop(run);
    expect(run.tools.ran).toEqual([]);
    expect(results(run.conversation.messages).find(({ callId }) => callId === 'w')?.output).toBe(
      `${OUTCOME_UNKNOWN}\nIt had called these tools by then:\n- concierge read: done\n- concierge bash: outcome unknown\n- concierge write: outcome unknown`,
    );
  });

  it('makes a call again that takes up what it began', async () => {
    const first = loopFixture({
      model: new ScriptedReplies([callTools(toolCall('s', 'resume')), say('done')]),
      tools: new HandlerTools({ resume: () => Promise.resolve('x') }),
    });
    await runAgentLoop(first);
    const untilIntent = first.writer.journal.slice(0, first.writer.journal.findIndex(({ kind }) => kind === 'intent') + 1);
    const steps: TurnStep[] = [{ kind: 'prompt', message: userMessage('hello') }, ...untilIntent];
    const tools = new HandlerTools({ resume: () => Promise.resolve('taken up') });
    const run = loopFixture({ model: new ScriptedReplies([say('done')]), tools, steps });
    await runAgentLoop(run);
    expect(tools.ran).toEqual(['s']);
    expect(results(run.conversation.messages)).toMatchObject([{ output: 'taken up', isError: false }]);
  });

  it('does not emit the start of a call again', async () => {
    const journal = await wholeTurn();
    const model = new ScriptedReplies([say('done')]);
    const run = loopFixture({ model, tools: tools(), steps: journal.slice(0, 3), run: { startedCalls: new Set(['r']) } });
    await runAgentLoop(run);
    const of = (id: string): string[] => run.writer.events.filter(({ data }) => 'id' in data && data.id === id).map(({ type }) => type);
    expect(of('r')).toEqual(['tool_call_end', 'tool_result']);
    expect(of('w')).toEqual(['tool_call_start', 'tool_call_end', 'tool_result']);
  });

  it('asks the model nothing when the answer is already journaled', async () => {
    const model = new ScriptedReplies([]);
    const run = loopFixture({ model, tools: tools(), steps: await wholeTurn() });
    await expect(runAgentLoop(run)).resolves.toBe('stop');
    expect(model.requests).toEqual([]);
  });

  it('stands where the attempt before it stood', async () => {
    const journal = await wholeTurn();
    const one = loopFixture({ model: new ScriptedReplies([]), steps: journal });
    const other = loopFixture({ model: new ScriptedReplies([]), steps: structuredClone(journal) });
    expect(JSON.stringify(other.conversation.messages)).toBe(JSON.stringify(one.conversation.messages));
    expect(one.conversation.tally.models).toEqual([{ ...modelUsage(200, 20), calls: 2 }]);
  });

  it('stops before a side effect when its intent cannot be written', async () => {
    const run = loopFixture({ model: new ScriptedReplies([callTools(toolCall('w', 'write'))]), tools: tools() });
    run.writer.failAt = (step) => (step.kind === 'intent' ? new Error('lease lost') : undefined);
    await expect(runAgentLoop(run)).rejects.toThrow('lease lost');
    expect(run.tools.ran).toEqual([]);
  });
});

function following(): { readonly progress: CallProgress; readonly deltas: () => string[] } {
  const events: TurnEvent[] = [];
  const progress = new CallProgress({ id: 'c1', name: 'bash' }, (event) => events.push(event));
  const deltas = (): string[] =>
    events.map((event) => {
      if (event.type !== 'tool_call_progress' || event.data.id !== 'c1') throw new Error(`not of this call: ${event.type}`);
      return event.data.delta;
    });
  return { progress, deltas };
}

describe('what a call reports while it runs', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('is not emitted for a short call', () => {
    const { progress, deltas } = following();
    progress.hear('quick');
    jest.advanceTimersByTime(limits.toolProgressAfterMs - 1);
    progress[Symbol.dispose]();
    jest.advanceTimersByTime(60_000);
    expect(deltas()).toEqual([]);
  });

  it('is emitted when the call takes longer, from its beginning, some of it at a time', () => {
    const { progress, deltas } = following();
    progress.hear('one ');
    progress.hear('two ');
    jest.advanceTimersByTime(limits.toolProgressAfterMs);
    expect(deltas()).toEqual(['one two ']);
    progress.hear('three ');
    progress.hear('four');
    jest.advanceTimersByTime(1000);
    expect(deltas()).toEqual(['one two ', 'three four']);
  });

  it('is never emitted after the call has ended', () => {
    const { progress, deltas } = following();
    jest.advanceTimersByTime(limits.toolProgressAfterMs);
    progress.hear('too late');
    progress[Symbol.dispose]();
    progress.hear('later still');
    jest.advanceTimersByTime(60_000);
    expect(deltas()).toEqual([]);
  });

  it('ends at its limit, with a note that there is more, and never in half a character', () => {
    const { progress, deltas } = following();
    progress.hear('ä'.repeat(limits.toolProgressMaxBytes));
    jest.advanceTimersByTime(limits.toolProgressAfterMs);
    progress.hear('more');
    jest.advanceTimersByTime(60_000);
    expect(deltas()).toHaveLength(1);
    expect(deltas()[0]).toBe(`${'ä'.repeat(limits.toolProgressMaxBytes / 2)}\n[there is more: it is in the result]\n`);
  });
});
