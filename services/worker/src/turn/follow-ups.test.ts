import { createLog, newMetrics } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { WebhookEvents } from '@concierge/turn';
import { ModelError, type ModelEvent } from '@concierge/model';
import { TurnCancelled } from '@concierge/turn';
import { describe, expect, it } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import type { AcceptedTurn, EventView } from '@concierge/contract';
import { call, say, Script, turnRun } from '../fixtures/scripted-run.ts';
import { unconnected } from '../fixtures/unconnected.ts';
import { channelFollowUp, emitTurnEnd, type FollowUp } from './publish-turn.ts';
import { TurnMetrics } from '../metrics.ts';
import type { ChosenModel } from './prepare-turn.ts';
import { TurnRunner } from './turn-runner.ts';

const log = createLog({ service: 'test', level: 'silent' });
let scope: TenantScope;
let woken: string[];

setUpEach(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
  woken = [];
});

function runner(model: ChosenModel): TurnRunner {
  const queue = { add: async ({ name }: { readonly name: string }) => Promise.resolve(void woken.push(name)) };
  return runnerWith(model, emitTurnEnd(new WebhookEvents({ queue, log })));
}

function runnerWith(model: ChosenModel, ...followUps: readonly FollowUp[]): TurnRunner {
  return new TurnRunner({
    models: { forRef: () => model },
    capabilityFactories: unconnected,
    metrics: new TurnMetrics(newMetrics('test'), () => 0),
    followUps,
    log,
  });
}

async function events(): Promise<EventView[]> {
  return (await scope.events.list({ limit: 10 })).items;
}

describe('the end of a turn', () => {
  it('is one event, also when another attempt finds the turn published', async () => {
    const { id } = await scope.events.endpoints.create({ url: 'https://example.com/', includeText: true });
    const run = turnRun(scope);
    const model = new Script(say('We are open.'));
    await runner(model).runTurn(run);
    await runner(model).runTurn(run);
    expect(await events()).toMatchObject([
      {
        type: 'turn.completed',
        endpointId: id,
        data: {
          tenant: 'acme',
          turnId: run.turn.turnId,
          contact_id: run.turn.sessionId,
          usage: { inputTokens: 50, outputTokens: 5 },
          finishReason: 'stop',
          text: 'We are open.',
        },
      },
    ]);
    expect(woken).toContain(id);
  });

  it('names with its code how it failed, and that it was cancelled', async () => {
    await scope.events.endpoints.create({ url: 'https://example.com/' });
    const cancelled = AbortSignal.abort(new TurnCancelled('cancelled'));
    await runner(new Script(say('Never said.'))).runTurn(turnRun(scope, { signal: cancelled }));
    await runner(new Script(new ModelError('unavailable', 'The model is away.'))).runTurn(turnRun(scope));
    const received = (await events()).map(({ type, data }) => [type, data['finishReason'] ?? data['error']]);
    expect(received).toEqual(
      expect.arrayContaining([
        ['turn.completed', 'cancelled'],
        ['turn.failed', { code: 'provider_error' }],
      ]),
    );
  });

  it('of one that was answered together with another is not emitted by itself, and nothing is kept without a subscriber', async () => {
    await runner(new Script(say('Hi!'))).runTurn(turnRun(scope));
    expect(await events()).toEqual([]);
    await scope.events.endpoints.create({ url: 'https://example.com/' });
    const run = turnRun(scope);
    await runner(new Script(say('Hi!'))).runTurn(run);
    const session = await scope.sessions.load(run.turn.sessionId);
    const record = session?.turns[0];
    if (session === undefined || record === undefined) throw new Error('not published');
    const joined = { ...record, id: 't_joined', joinedTo: record.id };
    const queue = { add: async () => Promise.resolve() };
    await emitTurnEnd(new WebhookEvents({ queue, log }))({ ...run, turn: { ...run.turn, turnId: 't_joined' } }, session, joined);
    expect(await events()).toHaveLength(1);
  });
});

describe('the answer to a contact on a channel', () => {
  const contact = {
    origin: 'webhook',
    agent: 'cs',
    authority: 'cs',
    sender: '4242',
    channel: 'channel_c',
    channelMessage: { address: { to: '4242', thread: null }, isGroup: false, messageRef: '7', media: [], replyTo: null },
  } satisfies Partial<AcceptedTurn>;

  const saying = (text: string, events: readonly ModelEvent[]): ModelEvent[] => [
    { type: 'text', delta: text },
    ...events.map((event) => (event.type === 'end' ? { ...event, text } : event)),
  ];

  async function listSent(...replies: readonly (readonly ModelEvent[])[]): Promise<string[]> {
    await scope.channels.connect('channel_c', { botToken: 'b', secretToken: 's' });
    await runnerWith(
      new Script(...replies),
      channelFollowUp((run) => unconnected.requestStaff(run)),
    ).runTurn(turnRun(scope, {}, contact));
    return (await scope.outbox.waiting()).map(({ text }) => text);
  }

  it('is the last reply, without what was said before a call', async () => {
    expect(await listSent(saying('Let me look.', call('c1', 'contacts', {})), say('We open at nine.'))).toEqual(['We open at nine.']);
  });

  it('is what was said before a call, when nothing is said behind its result', async () => {
    const look = call('c1', 'contacts', {});
    const keep = call('c2', 'contacts', {});
    expect(await listSent(saying('Let me look.', look), saying('We open at nine.', keep), say(''))).toEqual(['We open at nine.']);
  });

  it('is nothing more where the agent has sent a message by itself', async () => {
    const told = call('c1', 'reply', { text: 'We open at nine.' });
    expect(await listSent(saying('I tell them.', told), say(''))).toEqual(['We open at nine.']);
  });

  const endAt = (finishReason: 'length' | 'content_filter'): ModelEvent[] =>
    say('').map((event) => (event.type === 'end' ? { ...event, finishReason } : event));

  it.each(['length', 'content_filter'] as const)(
    'is that of a failed turn when the reply ended by %s before a word of it',
    async (reason) => {
      expect(await listSent(endAt(reason))).toEqual([expect.stringMatching(/^Sorry, something went wrong here/u)]);
      await scope.updateSettings({ onFailure: { action: 'say', notice: 'Bitte gleich noch einmal.' } });
      expect(await listSent(call('c1', 'contacts', {}), endAt(reason))).toContain('Bitte gleich noch einmal.');
    },
  );

  it('is nothing more where the reply ended so after the agent had sent a message, or where failures are silent', async () => {
    const told = call('c1', 'reply', { text: 'We open at nine.' });
    expect(await listSent(saying('I tell them.', told), endAt('length'))).toEqual(['We open at nine.']);
    await scope.updateSettings({ onFailure: { action: 'silent' } });
    expect(await listSent(endAt('content_filter'))).toEqual(['We open at nine.']);
  });

  it('is none when nothing was said', async () => {
    expect(await listSent(call('c1', 'contacts', {}), say(''))).toEqual([]);
  });
});
