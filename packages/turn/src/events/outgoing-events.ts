import type { EventType } from '@concierge/contract';
import { background, failpoint, type Log } from '@concierge/runtime';
import type { Happening, KeptEvent, TenantScope } from '@concierge/tenant';
import type { EventBells } from './event-bells.ts';

export interface OutgoingEventsOptions {
  readonly bells: Pick<EventBells, 'lay' | 'ring'>;
  readonly log: Log;
}

/** Tells a tenant's own systems what has happened: a file first, then a bell. A bell that is lost costs seconds and nothing else. */
export class OutgoingEvents {
  readonly #options: OutgoingEventsOptions;

  constructor(options: OutgoingEventsOptions) {
    this.#options = options;
  }

  /** On disk when it returns, for every endpoint that wants it. */
  async emit<Type extends EventType>(scope: TenantScope, happening: Happening<Type>): Promise<void> {
    const events = await scope.events.emit(happening);
    if (events.length > 0) background(this.ring(scope, events), this.#options.log);
  }

  /** For one URL, which has an endpoint. The id of the event. @throws AppError conflict when there is none that can be sent to */
  async emitTo<Type extends EventType>(scope: TenantScope, url: string, happening: Happening<Type>): Promise<string> {
    const event = await scope.events.emitTo(url, happening);
    background(this.ring(scope, [event]), this.#options.log);
    return event.id;
  }

  /** For events that wait, whoever put them there. */
  async ring({ accountId }: TenantScope, events: readonly KeptEvent[]): Promise<void> {
    const { bells } = this.#options;
    await failpoint('events.before-bell');
    for (const [endpointId, some] of Map.groupBy(events, (event) => event.endpointId)) {
      const planned = some.map(({ id }) => ({ id, delayMs: 0 }));
      await bells.lay({ accountId, endpointId }, planned);
      await bells.ring({ accountId, endpointId });
    }
    await failpoint('events.after-bell');
  }
}
