import type { MessagingChannel, DeliveryState, EventType } from '@concierge/contract';
import { Counter, type Registry } from 'prom-client';

/** Metrics of messages to channels. Labels have few values, and no tenant is named: the log names it. */
export class DeliveryMetrics {
  readonly #ended: Counter<'channel' | 'state'>;
  readonly #failures: Counter<'channel' | 'class'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#ended = new Counter({
      name: 'concierge_deliveries_total',
      help: 'Messages to channels by outcome',
      labelNames: ['channel', 'state'],
      registers,
    });
    this.#failures = new Counter({
      name: 'concierge_channel_failures_total',
      help: 'Attempts to send that a channel refused, by class; binding_failed: nothing is sent until the credentials are fixed',
      labelNames: ['channel', 'class'],
      registers,
    });
  }

  ended(channel: MessagingChannel, state: DeliveryState): void {
    this.#ended.inc({ channel, state });
  }

  failed(channel: MessagingChannel, kind: string): void {
    this.#failures.inc({ channel, class: kind });
  }
}

/** Metrics of events that are sent to tenants' own systems. */
export class EventMetrics {
  readonly #tries: Counter<'type' | 'outcome'>;

  constructor(registry: Registry) {
    this.#tries = new Counter({
      name: 'concierge_events_total',
      help: 'Tries at sending an event: sent, failed (to be tried again), dead (given up)',
      labelNames: ['type', 'outcome'],
      registers: [registry],
    });
  }

  tried(type: EventType, outcome: 'sent' | 'failed' | 'dead'): void {
    this.#tries.inc({ type, outcome });
  }
}
