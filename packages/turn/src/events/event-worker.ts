import { limits, type EventRecord, type EventTry, type EventType } from '@concierge/contract';
import { failpoint, type Log } from '@concierge/runtime';
import { endpointIdOfEvent, type Tenants, type TenantScope } from '@concierge/tenant';
import type { DueClaim } from '../due/due-queue.ts';
import { DueWorker } from '../due/due-worker.ts';
import type { EventQueue } from './event-queue.ts';
import { retryDelayMs, type EventSender, type SentEvent } from './event-sender.ts';

/** Endpoints that one worker sends to at once; each mostly waits for responses. */
const ENDPOINTS_AT_ONCE = 100;
/** Events of one endpoint before other endpoints get a slot. */
const ROUNDS = 20;
/** The wait after a failure of our own, such as a full disk. */
const AGAIN_AFTER_MS = 30_000;

export interface EventWorkerOptions {
  readonly queue: EventQueue;
  readonly tenants: Tenants;
  readonly sender: EventSender;
  /** Endpoints that this worker sends to at once. */
  readonly concurrency?: number;
  readonly log: Log;
  /** For metrics: `failed` is tried again, `dead` is not. */
  readonly onTried?: (type: EventType, outcome: 'sent' | 'failed' | 'dead') => void;
  readonly now?: () => number;
  readonly random?: () => number;
}

/**
 * Sends webhook events: claims an endpoint, tries what is due there, a few at a time, and records the outcome. The file
 * is the truth: a sender that dies in between leaves an event that is sent again, with the same id.
 */
export class EventWorker {
  readonly name = 'event worker';
  readonly #options: EventWorkerOptions;
  readonly #worker: DueWorker;
  #draining = false;

  constructor(options: EventWorkerOptions) {
    this.#options = options;
    const { queue, log, concurrency = ENDPOINTS_AT_ONCE } = options;
    const handle = async (endpoint: DueClaim, signal: AbortSignal): Promise<number | null> => this.#sendDue(endpoint, signal);
    this.#worker = new DueWorker({ queue: queue.endpoints, handle, concurrency, afterFailureMs: AGAIN_AFTER_MS, log });
  }

  start(): void {
    this.#worker.start();
  }

  /** Requests under way get the grace; a request without an answer by then is sent again by another process. */
  async stop(graceMs: number): Promise<void> {
    this.#draining = true;
    await this.#worker.stop(graceMs);
  }

  /** @returns how long until the next try at this endpoint, null when nothing waits for it */
  async #sendDue(endpoint: DueClaim, signal: AbortSignal): Promise<number | null> {
    const { queue, tenants } = this.#options;
    const events = queue.openEndpoint(endpoint);
    const scope = await tenants.find(endpoint.tenantId);
    for (let round = 0; round < ROUNDS && !this.#draining; round += 1) {
      const { claims } = await events.claim(limits.eventsAtOnce);
      if (claims.length === 0) break;
      const delays = await Promise.all(
        claims.map(async (claim) => {
          const delayMs = await this.#trySend(scope, claim.name, signal);
          await events.plan(claim, delayMs ?? null);
          return delayMs;
        }),
      );
      // The endpoint may have taken the whole timeout: other endpoints go first, then its next few events.
      if (!delays.includes(undefined)) break;
    }
    return (await events.claim(0)).nextInMs;
  }

  /** How long until the event is tried again; undefined when it is not tried again. */
  async #trySend(scope: TenantScope | undefined, id: string, signal: AbortSignal): Promise<number | undefined> {
    try {
      return scope === undefined ? undefined : await this.#send(scope, id, signal);
    } catch (error) {
      if (signal.aborted) return 0;
      this.#options.log.error({ err: error, tenantId: scope?.tenantId, eventId: id }, 'an event could not be processed');
      return AGAIN_AFTER_MS;
    }
  }

  /** How long until it is tried again; undefined when it is not tried again. */
  async #send(scope: TenantScope, id: string, signal: AbortSignal): Promise<number | undefined> {
    const { files, endpoints } = scope.events;
    const endpointId = endpointIdOfEvent(id);
    const event = await files.waiting(id);
    if (event === undefined) return undefined;
    if (event.outcome !== null) {
      await files.finishMove(id, event.outcome);
      return undefined;
    }
    const blockedReason = await endpoints.blockedReason(endpointId);
    if (blockedReason !== null) return this.#settle(scope, event, { outcome: 'dead', reason: blockedReason });
    const endpoint = await endpoints.open(endpointId);
    await failpoint('events.before-send');
    const sent = await this.#options.sender.send(endpoint, event, signal);
    await failpoint('events.after-send');
    return this.#conclude(scope, withTry(event, sent), sent);
  }

  async #conclude(scope: TenantScope, event: EventRecord, { error, isGone, retryAfterMs }: SentEvent): Promise<number | undefined> {
    const { files, endpoints } = scope.events;
    const endpointId = endpointIdOfEvent(event.id);
    if (error === null) {
      await endpoints.noteSuccess(endpointId);
      return this.#settle(scope, event, { outcome: 'sent', reason: null });
    }
    if (await endpoints.noteFailure(endpointId, { isGone }))
      this.#options.log.warn({ tenantId: scope.tenantId, endpointId, error }, 'an event endpoint was disabled');
    if (isGone) return this.#settle(scope, event, { outcome: 'dead', reason: error });
    const delayMs = retryDelayMs(event.tries, { random: (this.#options.random ?? Math.random)(), retryAfterMs });
    if (delayMs === undefined)
      return this.#settle(scope, event, { outcome: 'dead', reason: `Every try has failed. The last one: ${error}` });
    await files.put({ ...event, nextTryAt: new Date(this.#nowMs() + delayMs).toISOString() });
    this.#report(scope, event, 'failed');
    return delayMs;
  }

  async #settle(
    scope: TenantScope,
    event: EventRecord,
    { outcome, reason }: { readonly outcome: 'sent' | 'dead'; readonly reason: string | null },
  ): Promise<undefined> {
    await this.#noteRun(scope, event, { outcome, reason });
    await scope.events.files.settle({ ...event, outcome, reason });
    this.#report(scope, event, outcome);
  }

  /** Records in a schedule's history how the sending of its reply ended. */
  async #noteRun(
    scope: TenantScope,
    { id, type, data }: EventRecord,
    end: { outcome: 'sent' | 'dead'; reason: string | null },
  ): Promise<void> {
    const { scheduleId, runId } = data;
    if (type !== 'schedule.completed' || typeof scheduleId !== 'string' || typeof runId !== 'string') return;
    const status = end.outcome === 'sent' ? 'sent' : 'failed';
    await scope.schedules.runs.noteDelivery(scheduleId, runId, { eventId: id, status, reason: end.reason });
  }

  #report({ tenantId }: TenantScope, { id: eventId, type, tries, log }: EventRecord, outcome: 'sent' | 'failed' | 'dead'): void {
    this.#options.onTried?.(type, outcome);
    const last = log.at(-1);
    const facts = { tenantId, eventId, type, tries, status: last?.status, ms: last?.ms };
    if (outcome === 'dead') this.#options.log.warn(facts, 'an event is a dead letter');
    else this.#options.log.info({ ...facts, outcome }, 'an event was tried');
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }
}

function withTry(event: EventRecord, { at, status, ms, error }: EventTry): EventRecord {
  return { ...event, tries: event.tries + 1, log: [...event.log, { at, status, ms, error }].slice(-limits.eventTriesKept) };
}
