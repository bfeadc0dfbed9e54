import { describe, expect, it } from '@jest/globals';
import { ModelFacts, type AcceptedTurn, type EventView, type Session } from '@concierge/contract';
import { ModelError } from '@concierge/model';
import { createLog, newMetrics } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { eventually, TestTenants } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { WebhookEvents, type TurnEnd } from '@concierge/turn';
import { say, Script, turnRun } from '../fixtures/scripted-run.ts';
import { unconnected } from '../fixtures/unconnected.ts';
import { TurnMetrics } from '../metrics.ts';
import type { ChosenModel } from './prepare-turn.ts';
import { TurnRunner } from './turn-runner.ts';
import { TurnWarnings } from './turn-warnings.ts';

const warned: object[] = [];
const log = Object.assign(createLog({ service: 'test', level: 'silent' }), { warn: (facts: object) => void warned.push(facts) });
let scope: TenantScope;
let warnings: TurnWarnings;
let nowMs: number;

setUpEach(async (stack) => {
  scope = await stack.use(await TestTenants.start({ log })).scope();
  await scope.events.endpoints.create({ url: 'https://example.com/', types: ['turn.warning'] });
  warned.length = 0;
  nowMs = Date.parse('2026-11-22T09:00:00Z');
  const queue = { add: async () => Promise.resolve() };
  warnings = new TurnWarnings({ webhookEvents: new WebhookEvents({ queue, log }), log, now: () => nowMs });
});

async function play(model: ChosenModel, accepted: Partial<AcceptedTurn> = {}): Promise<TurnEnd> {
  const metrics = new TurnMetrics(newMetrics('test'), () => 0);
  return new TurnRunner({ models: { forRef: () => model }, capabilityFactories: unconnected, metrics, warn: warnings.report, log }).runTurn(
    turnRun(scope, {}, accepted),
  );
}

/** Those that have come, when there are so many. */
async function events(count: number): Promise<readonly EventView[]> {
  return eventually(async () => {
    const { items } = await scope.events.list({ limit: 20 });
    return items.length >= count ? items : undefined;
  });
}

class Small extends Script {
  override readonly facts = ModelFacts.parse({ contextWindow: 30_000, maxOutputTokens: 2000 });
}

describe('a conversation that no model could shorten', () => {
  const at = '2026-11-20T10:00:00.000Z';

  async function longSession(id: string): Promise<void> {
    const text = 'The parcel is in the blue locker. '.repeat(100);
    const messages = Array.from(
      { length: 60 },
      (_, place) => ({ id: `m${String(place)}`, turnId: 'old', at, role: 'user', text, sent: text }) as const,
    );
    const facts = { agent: 'admin', channel: 'web', sender: null, revision: 1, createdAt: at, updatedAt: at, title: 'Long' } as const;
    const session: Session = { version: 1, id, ...facts, messageCount: 60, summary: null, messages, turns: [], contextTokens: null };
    await scope.sessions.publish(session);
  }

  it('is a warning to the owner and in the log, a failed step of the turn, and the turn is answered', async () => {
    const sessionId = 'a'.repeat(32);
    await longSession(sessionId);
    const refused = new ModelError('unavailable', 'boom', { model: 'openai/m', status: 500 });
    const end = await play(new Small(refused, say('Here.')), { sessionId });
    expect(end.event.type).toBe('done');
    const [event] = await events(1);
    expect(event).toMatchObject({
      type: 'turn.warning',
      data: { contact_id: sessionId, agent: 'admin', warning: { code: 'summary_failed' } },
    });
    expect(JSON.stringify(event)).toContain('openai/m: the provider cannot be reached (500)');
    expect(warned).toContainEqual(expect.objectContaining({ code: 'summary_failed', tenantId: 'acme' }));
    const turn = (await scope.sessions.load(sessionId))?.turns.at(-1);
    expect(turn?.steps).toContainEqual(expect.objectContaining({ kind: 'compaction', name: 'summarise', isError: true }));
  });
});

describe('a refused model call', () => {
  const refusals = [
    ['a key', { status: 401, code: 'invalid_api_key' }, 'the provider does not accept the key (401 invalid_api_key)'],
    ['credit', { status: 429, code: 'insufficient_quota' }, 'the credit at the provider is used up (429 insufficient_quota)'],
    ['a model', { status: 404, code: 'model_not_found' }, 'the provider has no such model, or not for this key (404 model_not_found)'],
    ['no key', {}, 'the providers file has no usable key for it'],
  ] as const;

  it.each(refusals)('for %s reports why to the owner, and nothing to the customer', async (_case, facts, why) => {
    const refused = new ModelError('rejected', 'sk-secret was refused', { model: 'openai/m', ...facts });
    const [owner, customer] = [await play(new Script(refused)), await play(new Script(refused), { agent: 'cs', authority: 'cs' })];
    const data = { code: 'provider_error', retryable: false };
    expect(owner.event).toMatchObject({
      type: 'error',
      data: { ...data, message: `The model provider refused the request. openai/m: ${why}.` },
    });
    expect(customer.event).toMatchObject({ type: 'error', data: { ...data, message: 'The model provider refused the request.' } });
    expect(JSON.stringify([owner, customer])).not.toContain('sk-secret');
  });

  it('notifies the operator with the provider’s status and code', async () => {
    await play(new Script(new ModelError('rejected', 'no', { model: 'openai/m', status: 401, code: 'invalid_api_key' })));
    const facts = { model: 'openai/m', providerStatus: 401, providerCode: 'invalid_api_key', code: 'provider_error' };
    expect(warned).toContainEqual(expect.objectContaining(facts));
  });

  it('notifies the owner’s systems once a day, whichever agent it was', async () => {
    const refused = new ModelError('rejected', 'no', { model: 'openai/m', status: 402 });
    for (const agent of ['cs', 'admin', 'cs']) await play(new Script(refused), { agent });
    expect(await events(1)).toMatchObject([
      {
        type: 'turn.warning',
        timestamp: '2026-11-22T00:00:00.000Z',
        data: { agent: 'cs', warning: { code: 'model_refused', message: expect.stringContaining('credit') } },
      },
    ]);
    nowMs += 86_400_000;
    await play(new Script(refused));
    expect(await events(2)).toHaveLength(2);
  });

  it('for what is written in one conversation is no warning that no turn is answered', async () => {
    const flagged = new ModelError('rejected', 'flagged', { model: 'openai/m', status: 403, code: 'content_policy_violation' });
    const { event } = await play(new Script(flagged));
    const why = 'the provider does not answer what is written in this conversation (403 content_policy_violation)';
    expect(event).toMatchObject({ type: 'error', data: { message: `The model provider refused the request. openai/m: ${why}.` } });
    expect(warned).not.toContainEqual(expect.objectContaining({ code: 'model_refused' }));
    expect((await scope.events.list({ limit: 5 })).items).toEqual([]);
  });

  it('may be tried again where that can help', async () => {
    const silent = new ModelError('timeout', 'nothing came', { model: 'openai/m' });
    expect((await play(new Script(silent))).event).toMatchObject({ type: 'error', data: { retryable: true } });
    const tooLong = new ModelError('context_overflow', 'too long', { model: 'openai/m' });
    expect((await play(new Script(tooLong, tooLong))).event).toMatchObject({ type: 'error', data: { retryable: false } });
    expect((await scope.events.list({ limit: 5 })).items).toEqual([]);
  });
});
