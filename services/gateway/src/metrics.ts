import { newMetrics } from '@concierge/runtime';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** What the gateway counts. Labels have few values: never a tenant, a session or a path as it was asked for. */
export class GatewayMetrics {
  readonly registry: Registry;
  /** Until the answer begins: for event streams that is the acceptance of their turn. */
  readonly requests: Histogram<'route' | 'method' | 'status'>;
  /** From an authenticated request to a turn that is on disk and in its lane. */
  readonly accepts: Histogram<'agent'>;
  /** Duration of webhooks that were answered with 200, from the moment their body was read. */
  readonly acknowledgements: Histogram<'channel'>;
  /** Items that channels delivered. `reason`: what became of an item, or why nothing did. */
  readonly inboundItems: Counter<'channel' | 'kind' | 'reason'>;
  readonly openStreams: Gauge;
  readonly droppedClients: Counter;
  readonly uploads: Counter<'type'>;

  constructor() {
    this.registry = newMetrics('gateway');
    const registers = [this.registry];
    this.requests = new Histogram({
      name: 'concierge_http_request_duration_seconds',
      help: 'Time until the answer to a request begins',
      labelNames: ['route', 'method', 'status'],
      buckets: requestBuckets,
      registers,
    });
    this.accepts = new Histogram({
      name: 'concierge_turn_accept_duration_seconds',
      help: 'Time to accept a turn: on disk and in its lane',
      labelNames: ['agent'],
      buckets: requestBuckets,
      registers,
    });
    this.acknowledgements = new Histogram({
      name: 'concierge_webhook_acknowledge_duration_seconds',
      help: 'Time to acknowledge a webhook: every message in it on disk',
      labelNames: ['channel'],
      buckets: requestBuckets,
      registers,
    });
    this.inboundItems = new Counter({
      name: 'concierge_inbound_items_total',
      help: 'Items of webhooks by what they were and what became of them',
      labelNames: ['channel', 'kind', 'reason'],
      registers,
    });
    this.openStreams = new Gauge({ name: 'concierge_event_streams_open', help: 'Event streams being served', registers });
    this.droppedClients = new Counter({
      name: 'concierge_event_stream_clients_dropped_total',
      help: 'Clients dropped because they did not read',
      registers,
    });
    new Gauge({ name: 'concierge_gateway_processes', help: 'Processes of the gateway that serve', registers }).set(1);
    this.uploads = new Counter({ name: 'concierge_uploads_total', help: 'Files stored', labelNames: ['type'], registers });
  }
}
