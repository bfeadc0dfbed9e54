import { createLog, newMetrics } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { WebhookEvents } from '@concierge/turn';
import { ModelError } from '@concierge/model';
import { TurnCancelled } from '@concierge/turn';
import { describe, expect, it } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import type { EventView } from '@concierge/contract';
import { say, Script, turnRun } from '../fixtures/scripted-run.ts';
import { unconnected } from '../fixtures/unconnected.ts';
import { emitTurnEnd } from './publish-turn.ts';
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
  const followUps = [emitTurnEnd(new WebhookEvents({ queue, log }))];
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
