import type { EventType } from '@concierge/contract';
import { Counter, type Registry } from 'prom-client';

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
