import { afterEach, describe, expect, it } from '@jest/globals';
import type { TurnRecord } from '@concierge/contract';
import { newMetrics, serveMetrics } from '@concierge/runtime';
import { TurnMetrics } from './metrics.ts';

const at = '2026-11-20T10:00:02.000Z';
const record: TurnRecord = {
  id: 't1',
  status: 'done',
  origin: 'api',
  acceptedAt: '2026-11-20T10:00:00.000Z',
  startedAt: at,
  firstTextAt: '2026-11-20T10:00:01.000Z',
  endedAt: at,
  attempts: 1,
  usage: { inputTokens: 7, outputTokens: 3 },
  models: [{ model: 'test/model', calls: 2, inputTokens: 7, outputTokens: 3, cachedInputTokens: 0, costUsd: null }],
  finishReason: 'stop',
  error: null,
  steps: [
    { kind: 'tool', name: 'read', startedAt: at, durationMs: 1, isError: false },
    { kind: 'tool', name: 'made-up-by-a-model', startedAt: at, durationMs: 1, isError: true },
  ],
  requestHash: 'h',
  keyId: null,
};

let stop: (() => Promise<void>) | undefined;
afterEach(async () => stop?.());

async function served(): Promise<{ url: string; metrics: TurnMetrics }> {
  const registry = newMetrics('worker');
  const metrics = new TurnMetrics(registry, () => 4);
  const server = await serveMetrics(registry, { port: 0, host: '127.0.0.1' });
  stop = async () => server[Symbol.asyncDispose]();
  return { url: `http://127.0.0.1:${String(server.port)}`, metrics };
}

describe('the worker’s figures', () => {
  it('count turns, model calls and tools without a label of a model’s making or a tenant’s', async () => {
    const { url, metrics } = await served();
    metrics.ended({ agent: 'sales', channel: 'web', acceptedAtMs: Date.parse(record.acceptedAt) }, record);
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toContain('concierge_turns_total{agent="other",channel="web",outcome="stop",service="worker"} 1');
    expect(text).toContain('concierge_model_calls_total{model="test/model",service="worker"} 2');
    expect(text).toContain('concierge_tool_calls_total{tool="unknown",outcome="error",service="worker"} 1');
    expect(text).toContain('concierge_turns_running{service="worker"} 4');
    expect(text).toContain('concierge_turn_seconds_sum{service="worker"} 2');
    expect(text).not.toContain('made-up-by-a-model');
  });

  it('page no operator for a tenant’s own key, and do not count what its owner pays', async () => {
    const { url, metrics } = await served();
    const error = { code: 'provider_error', message: 'no' } as const;
    const models = record.models.map((used) => ({ ...used, ownKey: true as const }));
    const failed: TurnRecord = { ...record, models, status: 'failed', finishReason: null, error, failedOnOwnKey: true };
    metrics.ended({ agent: 'cs', channel: 'web', acceptedAtMs: Date.parse(record.acceptedAt) }, failed);
    metrics.modelFailed({ model: 'test/model', kind: 'rejected', status: 401, waitMs: null, ownKey: true });
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toContain('concierge_turns_total{agent="cs",channel="web",outcome="own_key_failed",service="worker"} 1');
    expect(text).not.toContain('model="test/model"');
    expect(text).not.toContain('status="4xx",service="worker"} 1');
  });

  it('count what is rare: costs, compactions, sandboxes, fenced writes, restarts', async () => {
    const { url, metrics } = await served();
    const [used] = record.models;
    if (used === undefined) throw new Error('no model was used');
    const compaction = { kind: 'compaction', name: 'summarise', startedAt: at, durationMs: 1, isError: false } as const;
    const costly = { ...record, models: [{ ...used, costUsd: 0.25, cachedInputTokens: 5 }], steps: [compaction] };
    metrics.ended({ agent: 'cs', channel: 'channel_a', acceptedAtMs: Date.parse(record.acceptedAt) }, costly);
    metrics.sandboxStarted('failed');
    metrics.fenced();
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toContain('concierge_model_cost_usd_total{model="test/model",service="worker"} 0.25');
    expect(text).toContain('concierge_model_tokens_total{model="test/model",kind="cached",service="worker"} 5');
    expect(text).toContain('concierge_compactions_total{kind="summarise",service="worker"} 1');
    expect(text).toContain('concierge_sandbox_starts_total{outcome="failed",service="worker"} 1');
    expect(text).toContain('concierge_fenced_writes_total{service="worker"} 1');
  });

  it('name only models of the configuration', async () => {
    const registry = newMetrics('worker');
    const metrics = new TurnMetrics(registry, () => 0, { known: { model: ['a/b', 'other'], provider: ['a', 'other'] } });
    metrics.modelFailed({ model: 'a/b', kind: 'unavailable', status: 503, waitMs: 200 });
    metrics.modelFailed({ model: 'made/up', kind: 'rejected', status: undefined, waitMs: null });
    const text = await registry.metrics();
    expect(text).toContain('concierge_model_failures_total{model="a/b",kind="unavailable",service="worker"} 1');
    expect(text).toContain('concierge_model_failures_total{model="other",kind="rejected",service="worker"} 1');
    expect(text).toContain('concierge_model_requests_total{provider="a",status="5xx",service="worker"} 1');
    expect(text).toContain('concierge_model_retries_total{service="worker"} 1');
    expect(text).toContain('concierge_model_fallbacks_total{service="worker"} 1');
    expect(text).not.toContain('made/up');
  });

  it('are all that is served', async () => {
    const { url } = await served();
    expect((await fetch(`${url}/`)).status).toBe(404);
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(404);
  });
});
