import type { MessagingChannel, DeliveryState, EventType } from '@concierge/contract';
import { Counter, type Registry } from 'prom-client';

/** Figures about what goes out to chat apps. Labels are of few values, and no tenant is named: the log does that. */
export class DeliveryMetrics {
  readonly #ended: Counter<'channel' | 'state'>;
  readonly #failures: Counter<'channel' | 'class'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#ended = new Counter({
      name: 'concierge_deliveries_total',
      help: 'Messages to chat apps by what became of them',
      labelNames: ['channel', 'state'],
      registers,
    });
    this.#failures = new Counter({
      name: 'concierge_channel_failures_total',
      help: 'Tries to send that an app did not take, by class; binding_failed: nothing goes out any more until a person has seen to it',
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

/** Figures about events that are sent to tenants' own systems. */
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
