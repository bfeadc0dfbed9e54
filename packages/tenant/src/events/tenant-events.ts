import { join } from 'node:path';
import {
  AppError,
  eventData,
  limits,
  type EventData,
  type EventEndpoint,
  type EventRecord,
  type EventType,
  type EventView,
} from '@concierge/contract';
import type { FolderSync } from '@concierge/files';
import { failpoint, type Log } from '@concierge/runtime';
import type { TenantSecrets } from '../tenant-secrets.ts';
import { EventEndpoints } from './event-endpoints.ts';
import { EventFiles, noSuchEvent, toEventView, type EventsQuery, endpointIdOfEvent, deriveEventId } from './event-files.ts';

export interface TenantEventsOptions {
  readonly tenantId: string;
  /** tenants/<id>/events */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly secrets: TenantSecrets;
  readonly log: Log;
  readonly now?: () => number;
}

/** Something that the tenant's own systems may want to know. */
export interface WebhookEventInput<Type extends EventType = EventType> {
  readonly type: Type;
  /** Names the event among all of its type: reporting it again gives the same key. */
  readonly key: string;
  /** When it happened; also the same each time. */
  readonly at: string;
  readonly data: Omit<EventData[Type], 'tenant' | 'text'>;
  /** The text, for endpoints that ask for it; read only when there is one. */
  readonly text?: () => Promise<string>;
}

/** An event that is on disk and waits to be sent. */
export interface KeptEvent {
  readonly id: string;
  readonly endpointId: string;
  readonly dueMs: number;
}

/**
 * A tenant's webhook events: who gets them (`endpoints`), and the events as files until they are sent and a while
 * after.
 */
export class TenantEvents {
  readonly endpoints: EventEndpoints;
  readonly files: EventFiles;
  readonly #options: TenantEventsOptions;

  constructor(options: TenantEventsOptions) {
    this.#options = options;
    const { folder } = options;
    this.endpoints = new EventEndpoints({ ...options, folder: join(folder, 'endpoints'), store: folder });
    this.files = new EventFiles(options);
  }

  /** A file for each endpoint that wants it, on disk when it returns; one look at a folder when none does. */
  async emit<Type extends EventType>(webhookEvent: WebhookEventInput<Type>): Promise<KeptEvent[]> {
    const endpoints = await this.endpoints.subscribed(webhookEvent.type);
    return Promise.all(
      endpoints.map(async (endpoint) => this.#keep(endpoint, webhookEvent, endpoint.includeText || isTextItself(webhookEvent))),
    );
  }

  /**
   * For one URL that a schedule names, text included.
   * @throws AppError conflict, when it has no endpoint that can be sent to
   */
  async emitTo<Type extends EventType>(url: string, webhookEvent: WebhookEventInput<Type>): Promise<KeptEvent> {
    return this.#keep(await this.endpoints.usableAt(url), webhookEvent, true);
  }

  /** @throws AppError not_found */
  async get(id: string): Promise<EventView> {
    const found = await this.files.find(id);
    if (found === undefined) throw noSuchEvent();
    return toEventView(found);
  }

  async list(query: EventsQuery): Promise<{ items: EventView[]; nextCursor: string | null }> {
    return this.files.list(query);
  }

  /** @throws AppError not_found, conflict when it is no dead letter or its endpoint takes nothing */
  async redrive(id: string): Promise<KeptEvent> {
    const { endpointId, status } = await this.get(id);
    if (status === 'dead') await this.#assertTakes(endpointId);
    return toKeptEvent(await this.files.revive(id));
  }

  /** Dead letters of an endpoint, the oldest first, so many at once. @throws AppError not_found, conflict */
  async redriveAll(endpointId: string, sinceMs: number): Promise<{ readonly events: KeptEvent[]; readonly more: boolean }> {
    await this.endpoints.get(endpointId);
    await this.#assertTakes(endpointId);
    const ids = await this.files.listDeadEvents(endpointId, sinceMs);
    const events: KeptEvent[] = [];
    for (const id of ids.slice(0, limits.eventsRedrivenMax)) {
      const revived = await this.files.revive(id).catch((error: unknown) => {
        // Another process has it sent anew at the same moment.
        if (error instanceof AppError) return undefined;
        throw error;
      });
      if (revived !== undefined) events.push(toKeptEvent(revived));
    }
    return { events, more: ids.length > limits.eventsRedrivenMax };
  }

  async sweep(): Promise<void> {
    await this.endpoints.sweep();
    await this.files.sweep();
  }

  async #assertTakes(endpointId: string): Promise<void> {
    const blockedReason = await this.endpoints.blockedReason(endpointId);
    if (blockedReason !== null) throw new AppError('conflict', `Nothing can be sent anew: ${blockedReason}`);
  }

  async #keep<Type extends EventType>(
    endpoint: EventEndpoint,
    webhookEvent: WebhookEventInput<Type>,
    withText: boolean,
  ): Promise<KeptEvent> {
    const { tenantId } = this.#options;
    const { type, key, at, data, text } = webhookEvent;
    const id = deriveEventId({ tenantId, endpointId: endpoint.id, type, key, atMs: Date.parse(at) });
    const said = withText && text !== undefined ? { text: await text() } : {};
    const nextTryAt = new Date((this.#options.now ?? Date.now)()).toISOString();
    const event: EventRecord = {
      version: 1,
      id,
      type,
      timestamp: at,
      data: eventData[type].parse({ tenant: tenantId, ...data, ...said }),
      tries: 0,
      log: [],
      nextTryAt,
      outcome: null,
      reason: null,
    };
    await this.files.keep(event);
    await failpoint('events.after-file');
    return toKeptEvent(event);
  }
}

/** The text is what the event is about: without it there is nothing to send. */
function isTextItself({ type }: WebhookEventInput): boolean {
  return type === 'heartbeat.reported';
}

function toKeptEvent({ id, nextTryAt }: EventRecord): KeptEvent {
  return { id, endpointId: endpointIdOfEvent(id), dueMs: Date.parse(nextTryAt) };
}
