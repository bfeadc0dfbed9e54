import { describe, expect, it, jest } from '@jest/globals';
import { eventually, gate, TestTenants } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { mayUseTool, type AcceptedTurn, type Session } from '@concierge/contract';
import { ModelError } from '@concierge/model';
import { createLog, newMetrics } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { LeaseLost, TurnCancelled, TurnTimedOut, WorkerDraining, type TurnRun } from '@concierge/turn';
import { unconnected } from '../fixtures/unconnected.ts';
import { call, nextSessionId, say, Script, turnRun, usage } from '../fixtures/scripted-run.ts';
import { TurnMetrics } from '../metrics.ts';
import type { ChosenModel } from './prepare-turn.ts';
import { TurnRunner } from './turn-runner.ts';

const log = createLog({ service: 'test', level: 'silent' });
let scope: TenantScope;

setUpOnce(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
});

const buildRun = (parts: Partial<TurnRun> = {}, accepted: Partial<AcceptedTurn> = {}): ReturnType<typeof turnRun> =>
  turnRun(scope, parts, accepted);

function runner(model: ChosenModel): TurnRunner {
  const metrics = new TurnMetrics(newMetrics('test'), () => 0);
  return new TurnRunner({ models: { forRef: () => model }, capabilityFactories: unconnected, metrics, log });
}

async function saved(run: TurnRun): Promise<Session> {
  const session = await scope.sessions.load(run.turn.sessionId);
  if (session === undefined) throw new Error('no session was published');
  return session;
}

describe('running a turn', () => {
  it('publishes a new session with the turn in it, and then ends', async () => {
    const run = buildRun();
    const end = await runner(new Script(say('Hi!'))).runTurn(run);
    expect(end.event).toEqual({ type: 'done', data: { inputTokens: 50, outputTokens: 5, finishReason: 'stop' } });
    const session = await saved(run);
    expect(session).toMatchObject({
      revision: 1,
      agent: 'admin',
      channel: 'web',
      title: 'hello there',
      messageCount: 2,
      contextTokens: { tokens: 55, messages: 2 },
    });
    expect(session.messages).toMatchObject([
      { role: 'user', text: 'hello there' },
      { role: 'assistant', text: 'Hi!', model: 'test/model' },
    ]);
    expect(session.turns).toMatchObject([
      { id: run.turn.turnId, status: 'done', attempts: 1, requestHash: 'h', keyId: 'k1', models: [usage] },
    ]);
    expect(session.turns[0]?.steps).toMatchObject([{ kind: 'model', name: 'test/model' }]);
    expect((await scope.index.listSessions({ limit: 5 })).items.map(({ id }) => id)).toContain(run.turn.sessionId);
    expect((await scope.index.findTurn(run.turn.turnId))?.record.status).toBe('done');
  });

  it('sends the earlier message of a session again byte for byte', async () => {
    const first = new Script(say('one'));
    const second = new Script(say('two'));
    const id = nextSessionId();
    await runner(first).runTurn(buildRun({}, { sessionId: id }));
    const run = buildRun({}, { sessionId: id, text: 'again' });
    await runner(second).runTurn(run);
    expect(second.requests[0]?.messages[0]).toEqual(first.requests[0]?.messages[0]);
    expect(second.requests[0]?.messages[0]?.role).toBe('user');
    expect(JSON.stringify(second.requests[0]?.messages[0])).toContain('Current time: ');
    expect((await saved(run)).revision).toBe(2);
    expect(second.requests[0]?.system).toBe(first.requests[0]?.system);
  });

  it('only announces a turn that the session already contains', async () => {
    const run = buildRun();
    const end = await runner(new Script(say('once'))).runTurn(run);
    const silent = new Script();
    await expect(runner(silent).runTurn(run)).resolves.toEqual({ ...end, isRepeated: true });
    await expect(runner(silent).failTurn(run, 'turn_crashed')).resolves.toEqual({ ...end, isRepeated: true });
    expect(silent.requests).toEqual([]);
    expect((await saved(run)).revision).toBe(1);
  });

  it('indexes such a turn: the worker that published it may have died before it could', async () => {
    const first = buildRun();
    await runner(new Script(say('once'))).runTurn(first);
    const session = await saved(first);
    const run = buildRun({}, { sessionId: session.id });
    const turnsNow = [...session.turns, ...session.turns.map((record) => ({ ...record, id: run.turn.turnId }))];
    await scope.sessions.publish({ ...session, revision: 2, turns: turnsNow });
    expect(await scope.index.findTurn(run.turn.turnId)).toBeUndefined();
    await runner(new Script()).runTurn(run);
    expect(await scope.index.findTurn(run.turn.turnId)).toMatchObject({ sessionId: run.turn.sessionId });
  });

  it('tells pages of a session that comes into the lists after the end of its turn', async () => {
    const indexed = gate();
    const put = scope.index.putSession.bind(scope.index);
    const puts = jest.spyOn(scope.index, 'putSession').mockImplementation(async (...given) => {
      await indexed.opened;
      await put(...given);
    });
    const tell = jest.fn();
    const tells = jest.replaceProperty(scope, 'tellSession', tell);
    const run = buildRun();
    await runner(new Script(say('Hi!'))).runTurn(run);
    expect(tell).not.toHaveBeenCalled();
    indexed.open();
    await eventually(() => tell.mock.calls.length > 0);
    expect(tell.mock.calls).toEqual([[run.turn.sessionId]]);
    puts.mockRestore();
    tells.restore();
  });

  it('lets the agent work on the tenant’s files', async () => {
    const run = buildRun();
    const replies = [
      call('c1', 'write', { path: 'templates/t.md', content: 'T' }),
      call('c2', 'read', { path: 'templates/t.md' }),
      say('done'),
    ];
    await runner(new Script(...replies)).runTurn(run);
    expect((await scope.files.readText('templates/t.md')).text).toBe('T');
    expect((await saved(run)).messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant']);
    expect((await saved(run)).turns[0]).toMatchObject({ usage: { inputTokens: 150, outputTokens: 15 }, models: [{ calls: 3 }] });
  });

  it('shows images as images and keeps references only', async () => {
    const upload = await scope.uploads.save({ name: 'cat.png', type: 'image/png', bytes: Buffer.from('png') });
    const model = new Script(say('a cat'));
    const run = buildRun({}, { attachments: [upload] });
    await runner(model).runTurn(run);
    expect(model.requests[0]?.messages[0]?.role === 'user' && model.requests[0].messages[0].content).toEqual([
      { type: 'text', text: expect.stringContaining('cat.png') },
      { type: 'image', mediaType: 'image/png', base64: Buffer.from('png').toString('base64') },
    ]);
    expect(JSON.stringify(await saved(run))).not.toContain(Buffer.from('png').toString('base64'));
  });
});

describe('the cs agent', () => {
  const cs = { agent: 'cs', authority: 'admin', sender: 'bob' } as const;

  it('has its own tools and the contact’s memory, with any key', async () => {
    await scope.files.writeText('MEMORY.md', 'of marmalade the owner never speaks\n');
    const model = new Script(
      call('c1', 'memory_write', { text: 'Bob likes tea' }),
      call('c2', 'read', { path: 'MEMORY.md' }),
      say('noted'),
    );
    const run = buildRun({}, { ...cs, sessionId: nextSessionId() });
    await runner(model).runTurn(run);
    const offered = model.requests[0]?.tools.map(({ name }) => name) ?? [];
    expect(offered).toEqual(expect.arrayContaining(['read', 'memory_get', 'memory_write', 'reply', 'handoff']));
    expect(offered.filter((name) => !mayUseTool('cs', name))).toEqual([]);
    expect(JSON.stringify(model.requests)).not.toContain('marmalade');
    const next = new Script(say('tea?'));
    await runner(next).runTurn(buildRun({}, { ...cs, sessionId: run.turn.sessionId }));
    expect(next.requests[0]?.system).toContain('Bob likes tea');
    const other = new Script(say('hi'));
    await runner(other).runTurn(buildRun({}, { ...cs, sender: 'eve' }));
    expect(other.requests[0]?.system).not.toContain('Bob');
  });

  it('cannot call an admin’s tool even by name', async () => {
    const run = buildRun({}, cs);
    await runner(new Script(call('c1', 'write', { path: 'skills/x.md', content: 'x' }), say('no'))).runTurn(run);
    expect((await saved(run)).messages[2]).toMatchObject({ role: 'tool', isError: true });
    await expect(scope.files.readText('skills/x.md')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('reads no conversation but its own', async () => {
    const owner = buildRun();
    await runner(new Script(say('private'))).runTurn(owner);
    const run = buildRun({}, cs);
    await runner(new Script(call('c1', 'session_history', { session_id: owner.turn.sessionId }), say('no'))).runTurn(run);
    expect((await saved(run)).messages[2]).toMatchObject({ isError: true, output: expect.stringContaining('There is no conversation') });
  });
});

describe('a turn that does not come to its end', () => {
  function stopping(reason: Error): { run: ReturnType<typeof buildRun>; model: Script } {
    const stop = new AbortController();
    const run = buildRun({ signal: stop.signal });
    const model = new Script(() => {
      queueMicrotask(() => stop.abort(reason));
      return [{ type: 'text', delta: 'I was' }, ...say('never')];
    });
    return { run, model };
  }

  it('keeps the text so far when it is cancelled', async () => {
    const { run, model } = stopping(new TurnCancelled('cancelled'));
    const end = await runner(model).runTurn(run);
    expect(end.event).toMatchObject({ type: 'done', data: { finishReason: 'cancelled' } });
    const session = await saved(run);
    expect(session.messages).toMatchObject([{ role: 'user' }, { role: 'assistant', text: 'I was', partial: true }]);
    expect(session.turns[0]).toMatchObject({ status: 'cancelled', finishReason: 'cancelled', error: null });
  });

  it('keeps the message when it is cancelled before it began, and says so', async () => {
    const run = buildRun({ signal: AbortSignal.abort(new TurnCancelled('early')) });
    await expect(runner(new Script()).runTurn(run)).resolves.toMatchObject({ event: { data: { finishReason: 'cancelled' } } });
    const session = await saved(run);
    expect(session.messages).toMatchObject([{ role: 'user', text: 'hello there' }]);
    expect(session.turns).toMatchObject([{ status: 'cancelled', startedAt: null }]);
  });

  it('ends in turn_timeout when it ran too long', async () => {
    const { run, model } = stopping(new TurnTimedOut('too long'));
    await expect(runner(model).runTurn(run)).resolves.toMatchObject({
      event: { type: 'error', data: { code: 'turn_timeout', retryable: true, turnId: run.turn.turnId } },
    });
    expect((await saved(run)).turns[0]).toMatchObject({ status: 'failed', error: { code: 'turn_timeout' } });
  });

  it.each([new WorkerDraining('stopping'), new LeaseLost('gone')])('saves nothing and leaves it to the next start: %s', async (reason) => {
    const { run, model } = stopping(reason);
    await expect(runner(model).runTurn(run)).rejects.toBe(reason);
    await expect(scope.sessions.load(run.turn.sessionId)).resolves.toBeUndefined();
  });

  it('is saved as failed, with the message, when the provider gives up, and the session goes on', async () => {
    const run = buildRun();
    const failure = new ModelError('unavailable', 'boom at https://internal', { model: 'openai/gpt-x' });
    const end = await runner(new Script(failure)).runTurn(run);
    expect(end.event).toMatchObject({ type: 'error', data: { code: 'provider_error', retryable: true } });
    expect(JSON.stringify(end)).not.toContain('internal');
    expect((await saved(run)).turns).toMatchObject([{ failedModel: 'openai/gpt-x' }]);
    expect((await saved(run)).messages).toMatchObject([{ role: 'user' }]);
    const next = buildRun({}, { sessionId: run.turn.sessionId });
    await expect(runner(new Script(say('better'))).runTurn(next)).resolves.toMatchObject({ event: { type: 'done' } });
    expect((await saved(next)).turns.map(({ status }) => status)).toEqual(['failed', 'done']);
  });

  it('is given up with its finished steps when it crashes again and again', async () => {
    const first = buildRun();
    const model = new Script(call('w', 'write', { path: 'templates/x.md', content: 'x' }), new ModelError('unavailable', 'x'));
    await runner(model).runTurn(first);
    const intent = first.writer.steps.findIndex(({ kind }) => kind === 'intent');
    const run = buildRun({
      steps: first.writer.steps.slice(0, intent + 1).map((step) => structuredClone(step)),
      openCalls: new Set(['w']),
    });
    await expect(runner(new Script()).failTurn(run, 'turn_crashed')).resolves.toMatchObject({
      event: { data: { code: 'turn_crashed', retryable: false } },
    });
    expect((await saved(run)).messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    expect(run.writer.events.map(({ type }) => type)).toEqual(['tool_call_end', 'tool_result']);
  });

  it('goes on after the steps of an earlier start, and first emits that what was begun is void', async () => {
    const first = buildRun();
    await runner(new Script(call('c', 'list_files', {}), say('x'))).runTurn(first);
    const steps = first.writer.steps.slice(0, -1);
    const run = buildRun({ steps, reset: 'worker_lost', attempt: 2 });
    const model = new Script(say('at last'));
    await runner(model).runTurn(run);
    expect(run.writer.events[0]).toEqual({ type: 'text_reset', data: { reason: 'worker_lost' } });
    expect(model.requests).toHaveLength(1);
    const session = await saved(run);
    expect(session.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(session.turns[0]).toMatchObject({ attempts: 2, usage: { inputTokens: 100, outputTokens: 10 } });
  });
});
