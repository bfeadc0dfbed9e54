import type { EventType } from '@concierge/contract';
import { background, failpoint, type Log } from '@concierge/runtime';
import type { WebhookEventInput, KeptEvent, TenantScope } from '@concierge/tenant';
import type { EventQueue } from './event-queue.ts';

export interface WebhookEventsOptions {
  readonly queue: Pick<EventQueue, 'add'>;
  readonly log: Log;
}

/** Notifies a tenant's own systems: a file first, then a wake-up. A lost wake-up costs seconds and nothing else. */
export class WebhookEvents {
  readonly #options: WebhookEventsOptions;

  constructor(options: WebhookEventsOptions) {
    this.#options = options;
  }

  /** Emits an event to every endpoint that subscribes to it; it is on disk when this returns. */
  async emit<Type extends EventType>(scope: TenantScope, webhookEvent: WebhookEventInput<Type>): Promise<void> {
    const events = await scope.events.emit(webhookEvent);
    if (events.length > 0) background(this.wake(scope, events), this.#options.log);
  }

  /**
   * Emits an event to one URL, which has an endpoint.
   * @returns the id of the event.
   * @throws AppError conflict when no endpoint with this URL can be sent to
   */
  async emitTo<Type extends EventType>(scope: TenantScope, url: string, webhookEvent: WebhookEventInput<Type>): Promise<string> {
    const event = await scope.events.emitTo(url, webhookEvent);
    background(this.wake(scope, [event]), this.#options.log);
    return event.id;
  }

  /** Wakes workers for waiting events, whichever process wrote them. */
  async wake({ tenantId }: TenantScope, events: readonly KeptEvent[]): Promise<void> {
    await failpoint('events.before-wake-up');
    for (const [endpointId, some] of Map.groupBy(events, (event) => event.endpointId)) {
      const planned = some.map(({ id }) => ({ id, delayMs: 0 }));
      await this.#options.queue.add({ tenantId, name: endpointId }, planned);
    }
    await failpoint('events.after-wake-up');
  }
}
