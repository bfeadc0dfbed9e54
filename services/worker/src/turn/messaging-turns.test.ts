import { ModelFacts, type AcceptedTurn, type ModelUsage, type ToolMessage } from '@concierge/contract';
import { isContextOverflow, type ModelEvent, type ModelRequest } from '@concierge/model';
import { createLog, newMetrics } from '@concierge/runtime';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import type { TurnRun } from '@concierge/turn';
import { describe, expect, it } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { unconnected } from '../fixtures/unconnected.ts';
import { TurnMetrics } from '../metrics.ts';
import type { ChosenModel } from './prepare-turn.ts';
import { TurnRunner } from './turn-runner.ts';

const log = createLog({ service: 'test', level: 'silent' });
const usage: ModelUsage = { model: 'test/model', calls: 1, inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, costUsd: null };
const bob = {
  agent: 'cs',
  authority: 'cs',
  sender: '4242',
  channel: 'channel_c',
  sessionId: deriveSessionId('cs', 'channel_c', '4242'),
  channelMessage: { address: { to: '4242', thread: null }, isGroup: false, messageRef: '7', media: [], replyTo: null },
} satisfies Partial<AcceptedTurn>;

type Call = readonly [name: string, input: object];

/** Calls one tool after the other, and then reports that it is done. */
class CallingModel implements ChosenModel {
  readonly ref = 'test/model';
  readonly facts = ModelFacts.parse({});
  readonly isContextOverflow = isContextOverflow;
  readonly #calls: Call[];
  #made = 0;

  constructor(calls: readonly Call[]) {
    this.#calls = [...calls];
  }

  async *stream(_request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent, void, undefined> {
    signal.throwIfAborted();
    const next = this.#calls.shift();
    this.#made += 1;
    const toolCalls = next === undefined ? [] : [{ id: `c${String(this.#made)}`, name: next[0], arguments: JSON.stringify(next[1]) }];
    const text = next === undefined ? 'Done.' : '';
    if (text !== '') yield { type: 'text', delta: text };
    const finishReason = next === undefined ? 'stop' : 'tool_calls';
    yield { type: 'end', text, toolCalls, finishReason, usage, usageEstimated: false, model: 'test/model' };
    await Promise.resolve();
  }
}

let scope: TenantScope;
let turns = 0;

setUpEach(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
});

function buildRun(accepted: Partial<AcceptedTurn>): TurnRun {
  turns += 1;
  const turn: AcceptedTurn = {
    version: 1,
    turnId: `t_${String(turns)}`,
    tenantId: 'acme',
    sessionId: turns.toString(16).padStart(32, '0'),
    acceptedAtMs: Date.now(),
    origin: 'api',
    agent: 'admin',
    authority: 'admin',
    channel: 'web',
    sender: null,
    text: 'hello',
    attachments: [],
    requestHash: 'h',
    keyId: 'k1',
    ...accepted,
  };
  return {
    scope,
    turn,
    attempt: 1,
    startedAtMs: Date.now(),
    steps: [],
    reset: null,
    openCalls: new Set(),
    waitingBehind: async () => Promise.resolve([]),
    handOn: async () => Promise.resolve(),
    signal: new AbortController().signal,
    writer: {
      emit: () => undefined,
      record: () => undefined,
      step: async () => Promise.resolve(),
      persist: async () => Promise.resolve(),
      flush: async () => Promise.resolve(),
    },
  };
}

/** What the tools of a whole turn answered, as the session has kept it. */
async function readAnswers(run: TurnRun, calls: readonly Call[]): Promise<ToolMessage[]> {
  const metrics = new TurnMetrics(newMetrics('test'), () => 0);
  const end = await new TurnRunner({
    models: { forRef: () => new CallingModel(calls) },
    capabilityFactories: unconnected,
    metrics,
    log,
  }).runTurn(run);
  expect(end.event.type).toBe('done');
  const session = await scope.sessions.load(run.turn.sessionId);
  return (session?.messages ?? []).filter((message) => message.role === 'tool').filter(({ turnId }) => turnId === run.turn.turnId);
}

describe('a turn of the owner', () => {
  it('keeps a message for a customer on disk and reports that it was not sent', async () => {
    await scope.channels.connect('channel_c', { botToken: 'b', secretToken: 's' });
    const [sent, listed] = await readAnswers(buildRun({}), [
      ['message', { channel: 'telegram', to: '4242', text: 'Your parcel is here.' }],
      ['channels', {}],
    ]);
    expect(sent).toMatchObject({ isError: false, output: expect.stringContaining('ON ITS WAY') });
    expect(listed?.output).toContain('telegram: enabled');
    expect(await scope.outbox.waiting()).toMatchObject([{ text: 'Your parcel is here.', agent: 'admin' }]);
  });

  it('keeps one message and one schedule when it is run again after its results were lost', async () => {
    await scope.channels.connect('channel_c', { botToken: 'b', secretToken: 's' });
    const calls: readonly Call[] = [
      ['message', { channel: 'telegram', to: '4242', text: 'Once.' }],
      ['cron', { action: 'create', name: 'Report', message: 'Go.', every: '1h' }],
    ];
    const run = buildRun({});
    await readAnswers(run, calls);
    await scope.removeSession(run.turn.sessionId);
    await readAnswers({ ...buildRun({}), turn: run.turn }, calls);
    expect(await scope.outbox.waiting()).toHaveLength(1);
    expect((await scope.schedules.list()).schedules).toHaveLength(1);
  });

  it('makes a schedule that a turn of that schedule cannot multiply', async () => {
    const create: Call = ['cron', { action: 'create', name: 'Report', message: 'Go.', cron: '0 9 * * *', timezone: 'Europe/Berlin' }];
    const [made] = await readAnswers(buildRun({}), [create]);
    expect(made).toMatchObject({ isError: false, output: expect.stringContaining('Next runs (Europe/Berlin):') });
    const [refused] = await readAnswers(buildRun({ origin: 'schedule', keyId: null }), [create]);
    expect(refused).toMatchObject({ isError: true, output: expect.stringContaining('started by a schedule') });
    expect((await scope.schedules.list()).schedules).toHaveLength(1);
  });

  it('goes on when a channel is missing and an argument is wrong: the model reads why', async () => {
    const answers = await readAnswers(buildRun({}), [
      ['message', { channel: 'slack', to: 'U1ABC', text: 'Hi' }],
      ['cron', { action: 'create', name: 'x', message: 'y', cron: '* * * * * *' }],
      ['reply', { text: 'Hi' }],
    ]);
    expect(answers.map(({ isError }) => isError)).toEqual([true, true, true]);
    expect(answers.map(({ output }) => output).join('\n')).toMatch(
      /slack is not connected[^]*6 fields instead of five[^]*Say it in your answer/u,
    );
  });
});

describe('a turn of a customer', () => {
  it('requests a staff member, which the owner’s agent sees and ends', async () => {
    const [asked] = await readAnswers(buildRun(bob), [['handoff', { action: 'request', reason: 'Wants a refund.' }]]);
    expect(asked).toMatchObject({ isError: false, output: expect.stringContaining('A person is asked for.') });
    expect(await scope.handoffs.isPaused(bob.sessionId)).toBe(true);
    const [seen, listed, ended] = await readAnswers(buildRun({}), [
      ['handoff', { action: 'status' }],
      ['contacts', { action: 'list' }],
      ['handoff', { action: 'resume', session_id: bob.sessionId }],
    ]);
    expect(seen?.output).toContain('Wants a refund.');
    expect(listed?.output).toContain('4242');
    expect(ended?.output).toContain('is resumed');
    expect(await scope.handoffs.isPaused(bob.sessionId)).toBe(false);
  });

  it('adds a part to its own conversation and to no other', async () => {
    await scope.channels.connect('channel_c', { botToken: 'b', secretToken: 's' });
    const [replied] = await readAnswers(buildRun(bob), [['reply', { text: 'One moment.' }]]);
    expect(replied?.output).toContain('ON ITS WAY');
    expect(await scope.outbox.waiting()).toMatchObject([{ kind: 'reply', to: '4242', sessionId: bob.sessionId }]);
  });

  it('has no message, channels or cron, whatever it is asked to call, and sees no other contact', async () => {
    await scope.contacts.remember({ sender: '7777', displayName: 'Eve' });
    const answers = await readAnswers(buildRun({ ...bob, authority: 'admin' }), [
      ['message', { channel: 'telegram', to: '7777', text: 'Hi' }],
      ['channels', {}],
      ['cron', { action: 'list' }],
      ['contacts', { action: 'search', query: 'Eve' }],
      ['contacts', { action: 'show', sender: '7777' }],
      ['handoff', { action: 'status', session_id: '0'.repeat(32) }],
    ]);
    expect(answers.map(({ isError }) => isError)).toEqual([true, true, true, true, true, true]);
    expect(answers.map(({ output }) => output).join('\n')).not.toContain('Eve');
    expect(await scope.outbox.waiting()).toEqual([]);
  });
});
