import { describe, expect, it } from '@jest/globals';
import { TurnTrace, type TraceSpan } from '@concierge/contract';
import { callTools, eventually, FakeTelegram, gate, say, until, usage, type ScriptedModel } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { z } from 'zod';
import { telegram } from './test-deliveries.ts';
import { contactWrites, TestSystem, type Tenant } from './test-system.ts';

const price = { input: 100, output: 100 };
const spent = usage({ promptTokens: 990, completionTokens: 10 });
const Answer = z.object({ turnId: z.string(), contact_id: z.string() });

let whole: TestSystem;
let model: ScriptedModel;

setUpOnce(async (stack) => {
  const provider = stack.use(await new FakeTelegram(telegram).start());
  whole = stack.use(await TestSystem.start({ price, env: { TELEGRAM_API_URL: provider.url } }));
  ({ model } = whole);
});

async function ask({ keys, url }: Tenant, body: object): Promise<z.infer<typeof Answer>> {
  const headers = { 'x-api-key': keys.admin, 'content-type': 'application/json', accept: 'application/json' };
  const response = await fetch(`${url}/api/admin`, { method: 'POST', headers, body: JSON.stringify(body) });
  return Answer.parse(await response.json());
}

/** Once the turn has ended and its record can be read. */
async function readTrace({ keys, url }: Tenant, turnId: string, isMeant: (trace: TurnTrace) => boolean = () => true): Promise<TurnTrace> {
  return eventually(async () => {
    const response = await fetch(`${url}/api/turns/${turnId}/trace`, { headers: { 'x-api-key': keys.read } });
    if (response.status === 404) return undefined;
    const trace = TurnTrace.parse(await response.json());
    return trace.endedAt !== null && isMeant(trace) ? trace : undefined;
  });
}

function ofKind({ spans }: TurnTrace, kind: TraceSpan['kind']): TraceSpan[] {
  return spans.filter((span) => span.kind === kind);
}

describe('the record of a turn', () => {
  it('has its prompt by file, each model call with first text and cost, its tools, and why it waited', async () => {
    const tenant = await whole.tenant();
    const held = gate();
    model.when('the first of two', [until(held.opened), say('one')]);
    model.when('the second of two', [say('I look.'), callTools([{ name: 'read', args: { path: 'SOUL.md' } }]), spent], [say('two'), spent]);
    const { turnId: known, contact_id: contactId } = await ask(tenant, { message: 'say something before' });
    expect(known).not.toBe('');
    const first = ask(tenant, { message: 'the first of two', contact_id: contactId });
    await eventually(() => model.requests.some(({ userText }) => userText.includes('the first of two')));
    const second = ask(tenant, { message: 'the second of two', contact_id: contactId });
    await eventually(async () => (await tenant.scope.inbox.turnIds()).length === 2);
    held.open();
    await first;
    const { turnId } = await second;
    const trace = await readTrace(tenant, turnId);
    expect(ofKind(trace, 'received')).toMatchObject([{ name: 'api', isError: false }]);
    expect(ofKind(trace, 'waited').map(({ name }) => name)).toContain('own_session');
    const parts = ofKind(trace, 'prompt')[0]?.parts ?? [];
    expect(parts.map(({ name }) => name)).toEqual(expect.arrayContaining(['SOUL.md', 'tools', 'history', 'message']));
    for (const { tokens } of parts) expect(tokens).toBeGreaterThan(0);
    const calls = ofKind(trace, 'model');
    expect(calls).toMatchObject([
      { inputTokens: 990, outputTokens: 10, isError: false },
      { inputTokens: 990, outputTokens: 10, isError: false },
    ]);
    for (const { costUsd, firstTextMs, durationMs } of calls) {
      expect(costUsd).toBeCloseTo(0.1);
      expect(firstTextMs).toBeLessThanOrEqual(durationMs ?? -1);
    }
    expect(ofKind(trace, 'tool')).toMatchObject([{ name: 'read', isError: false }]);
    expect(ofKind(trace, 'saved')).toHaveLength(1);
    expect(JSON.stringify(trace)).not.toContain('the second of two');
  });

  it('leads to each part that was sent to a contact', async () => {
    const tenant = await whole.tenant();
    await tenant.scope.channels.connect('channel_c', telegram);
    const turns = await whole.openTurns();
    model.when('what a contact asks', [say('what the agent answers')]);
    const { turnId } = await turns.accept(tenant.scope, contactWrites('4242', 'what a contact asks'));
    const trace = await readTrace(tenant, turnId, (found) => ofKind(found, 'sent').length > 0);
    expect(ofKind(trace, 'received')).toMatchObject([{ name: 'webhook' }]);
    expect(ofKind(trace, 'sent')).toMatchObject([{ name: 'channel_c', isError: false, tries: 1 }]);
  });
});
