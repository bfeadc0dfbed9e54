import type { MessagingChannel } from '@concierge/contract';
import { Figures, newMetrics, openProcessFigures } from '@concierge/runtime';
import type { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** What became of a webhook. */
type Acknowledged = 'acknowledged' | 'rejected' | 'failed';

/** What the gateway counts; what each figure says is declared in packages/runtime, `figures.ts`. */
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
  readonly streams: Counter;
  readonly droppedClients: Counter;
  readonly uploads: Counter<'type'>;
  readonly #answers: Counter;
  readonly #webhooks: Counter;
  readonly #webhookMessages: Counter;

  /** `dataDir`: whose disk is measured. */
  constructor(dataDir: string) {
    this.registry = newMetrics('gateway');
    openProcessFigures(this.registry, { dataDir });
    const figures = new Figures(this.registry);
    this.requests = figures.histogram('concierge_http_request_duration_seconds');
    this.#answers = figures.counter('concierge_http_answers_total');
    this.accepts = figures.histogram('concierge_turn_accept_duration_seconds');
    this.acknowledgements = figures.histogram('concierge_webhook_acknowledge_duration_seconds');
    this.#webhooks = figures.counter('concierge_webhook_requests_total');
    this.#webhookMessages = figures.counter('concierge_webhook_messages_total');
    this.inboundItems = figures.counter('concierge_inbound_items_total');
    this.openStreams = figures.gauge('concierge_event_streams_open');
    this.streams = figures.counter('concierge_event_streams_total');
    this.droppedClients = figures.counter('concierge_event_stream_clients_dropped_total');
    figures.gauge('concierge_gateway_processes').set(1);
    this.uploads = figures.counter('concierge_uploads_total');
  }

  /** `seconds`: until the answer began. */
  answered(request: { readonly route: string; readonly method: string; readonly status: number }, seconds: number): void {
    const { route, method, status } = request;
    this.requests.observe({ route, method, status: String(status) }, seconds);
    this.#answers.inc({ class: `${String(status).charAt(0)}xx` });
  }

  webhookEnded(channel: MessagingChannel, outcome: Acknowledged): void {
    this.#webhooks.inc({ channel, outcome });
  }

  /** One item of a webhook. */
  itemEnded(channel: MessagingChannel, kind: string, reason: string): void {
    this.inboundItems.inc({ channel, kind, reason });
    if (kind === 'message') this.#webhookMessages.inc({ channel, outcome: reason });
  }
}
