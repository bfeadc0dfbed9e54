import { describe, expect, it } from '@jest/globals';
import { GatewayMetrics } from './metrics.ts';

describe('the gateway’s figures', () => {
  it('count answers by the first digit of their status', async () => {
    const metrics = new GatewayMetrics('.');
    metrics.answered({ route: 'listAgents', method: 'GET', status: 503 }, 0.01);
    const text = await metrics.registry.metrics();
    expect(text).toContain('concierge_http_answers_total{class="5xx",service="gateway"} 1');
    expect(text).toContain('concierge_http_answers_total{class="2xx",service="gateway"} 0');
    expect(text).toMatch(/^concierge_http_request_duration_seconds_count\{[^}]*route="listAgents"[^}]*\} 1$/mu);
  });

  it('count messages of webhooks beside their other items', async () => {
    const metrics = new GatewayMetrics('.');
    metrics.itemEnded('channel_a', 'message', 'duplicate');
    metrics.itemEnded('channel_a', 'receipt', 'delivered');
    metrics.webhookEnded('channel_a', 'rejected');
    const text = await metrics.registry.metrics();
    expect(text).toContain('concierge_webhook_messages_total{channel="channel_a",outcome="duplicate",service="gateway"} 1');
    expect(text).toContain('concierge_inbound_items_total{channel="channel_a",kind="receipt",reason="delivered",service="gateway"} 1');
    expect(text).toContain('concierge_webhook_requests_total{channel="channel_a",outcome="rejected",service="gateway"} 1');
  });

  it('count clients that were dropped', async () => {
    const metrics = new GatewayMetrics('.');
    metrics.droppedClients.inc();
    expect(await metrics.registry.metrics()).toContain('concierge_event_stream_clients_dropped_total{service="gateway"} 1');
  });
});
