import { describe, expect, it } from '@jest/globals';
import { TurnTrace, type TraceSpan } from '@concierge/contract';
import { callTools, eventually, FakeTelegram, gate, OtlpReceiver, say, until, usage, type ScriptedModel } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { z } from 'zod';
import { telegram } from './test-deliveries.ts';
import { contactWrites, TestSystem, type Tenant } from './test-system.ts';

const price = { input: 100, output: 100 };
const spent = usage({ promptTokens: 990, completionTokens: 10 });
const Answer = z.object({ turnId: z.string(), contact_id: z.string() });

let whole: TestSystem;
let model: ScriptedModel;
let collector: OtlpReceiver;

setUpOnce(async (stack) => {
  const provider = stack.use(await new FakeTelegram(telegram).start());
  collector = stack.use(await new OtlpReceiver().start());
  const telemetry = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '50' };
  whole = stack.use(await TestSystem.start({ price, env: { TELEGRAM_API_URL: provider.url, ...telemetry } }));
  ({ model } = whole);
});

async function ask({ keys, url }: Tenant, body: object, more: Record<string, string> = {}): Promise<z.infer<typeof Answer>> {
  const headers = { 'x-api-key': keys.admin, 'content-type': 'application/json', accept: 'application/json', ...more };
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

describe('OpenTelemetry', () => {
  it('has the turn below its caller’s span, with its model calls and tools, and tells the provider of it', async () => {
    const tenant = await whole.tenant();
    model.when('within a span', [callTools([{ name: 'list_files', args: {} }]), spent], [say('done'), spent]);
    const [traceId, callerId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
    const { turnId } = await ask(tenant, { message: 'within a span' }, { traceparent: `00-${traceId}-${callerId}-01` });
    const spans = await eventually(() => {
      const found = collector.spans.filter((span) => span.traceId === traceId);
      return found.length > 0 ? found : undefined;
    });
    const root = spans.find(({ parentSpanId }) => parentSpanId === callerId);
    expect(root).toMatchObject({
      name: 'invoke_agent admin',
      kind: 'SPAN_KIND_SERVER',
      attributes: { 'gen_ai.operation.name': 'invoke_agent', 'concierge.turn.id': turnId, 'concierge.tenant.id': tenant.keys.tenantId },
      resource: { 'service.name': 'concierge' },
    });
    const below = spans.filter(({ parentSpanId }) => parentSpanId === root?.spanId);
    expect(below).toHaveLength(spans.length - 1);
    expect(below.filter(({ name }) => name.startsWith('chat '))).toMatchObject([
      { kind: 'SPAN_KIND_CLIENT', attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 990 } },
      { kind: 'SPAN_KIND_CLIENT', attributes: { 'gen_ai.usage.output_tokens': 10 } },
    ]);
    expect(below.find(({ name }) => name === 'execute_tool list_files')?.attributes).toMatchObject({ 'gen_ai.tool.name': 'list_files' });
    for (const { startTimeUnixNano: from, endTimeUnixNano: to } of spans) expect(from <= to).toBe(true);
    const sent = model.requests.filter(({ userText }) => userText.includes('within a span')).map(({ headers }) => headers['traceparent']);
    expect(new Set(sent)).toEqual(new Set([`00-${traceId}-${root?.spanId ?? ''}-01`]));
  });

  it('is continued by a call of the MCP server and by a webhook', async () => {
    const tenant = await whole.tenant();
    const traceparent = '00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ask_admin', arguments: { message: 'over MCP' } } };
    const headers = {
      'x-api-key': tenant.keys.admin,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
    };
    const asked = await fetch(`${tenant.url}/mcp`, { method: 'POST', headers: { ...headers, traceparent }, body: JSON.stringify(call) });
    expect([asked.status, await asked.text()]).toEqual([200, expect.stringContaining('structuredContent')]);
    await tenant.scope.channels.connect('channel_c', telegram);
    const update = {
      update_id: 7,
      message: {
        message_id: 7,
        date: 1,
        chat: { id: 42, type: 'private' },
        from: { id: 42, is_bot: false, first_name: 'Ann' },
        text: 'over Telegram',
      },
    };
    const delivered = await fetch(`${tenant.url}/webhook/channel_c/${tenant.keys.tenantId}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-telegram-bot-api-secret-token': telegram.secretToken,
        traceparent: traceparent.replace('00-1a', '00-2a'),
      },
      body: JSON.stringify(update),
    });
    expect(delivered.status).toBe(200);
    const roots = await eventually(() => {
      const found = collector.spans.filter(({ parentSpanId }) => parentSpanId === 'b7ad6b7169203331');
      const traces = new Set(found.map(({ traceId }) => traceId.slice(0, 2)));
      return traces.has('1a') && traces.has('2a') ? found : undefined;
    });
    expect(roots.map(({ name }) => name)).toEqual(expect.arrayContaining(['invoke_agent admin', 'invoke_agent cs']));
  });

  it('does not hold a turn up while its collector is away', async () => {
    const tenant = await whole.tenant();
    collector.status = 503;
    const before = collector.headers.length;
    const { turnId } = await ask(tenant, { message: 'nothing collects this' });
    expect((await readTrace(tenant, turnId)).status).toBe('done');
    await eventually(() => collector.headers.length > before);
    collector.status = 200;
  });
});
