import { randomBytes } from 'node:crypto';
import { HOUR_MS, limits, MINUTE_MS, SECOND_MS, type EventTry, type EventRecord } from '@concierge/contract';
import type { OpenEndpoint } from '@concierge/tenant';
import { Webhook } from 'standardwebhooks';

/** The waits that Standard Webhooks proposes, after the first try, which is made at once. */
const delaysMs = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
] as const;
const LONGEST_MS = 24 * HOUR_MS;
/** The largest jitter, so that events that failed together are not tried together. */
const JITTER = 0.2;

/**
 * How long to wait after this many tries; undefined when there is no further one. The wait that the endpoint asks for
 * is the minimum.
 */
export function retryDelayMs(
  tries: number,
  { random, retryAfterMs }: { readonly random: number; readonly retryAfterMs: number },
): number | undefined {
  const delayMs = delaysMs[tries - 1];
  if (delayMs === undefined) return undefined;
  return Math.round(Math.max(delayMs * (1 + JITTER * random), Math.min(retryAfterMs, LONGEST_MS)));
}

/** The header Retry-After, seconds or a date; 0 for none, and for what is neither. */
function retryAfterMs(header: string | null, nowMs: number): number {
  if (header === null) return 0;
  if (/^\s*\d{1,9}\s*$/u.test(header)) return Number(header) * SECOND_MS;
  const atMs = Date.parse(header);
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - nowMs);
}

export type EventFetch = (url: string, init: RequestInit) => Promise<Response>;

export interface EventSenderOptions {
  /** Guarded: an endpoint's URL is a tenant's. Ends after `limits.eventTimeoutMs`. */
  readonly fetch: EventFetch;
  /** Explains to the tenant why no answer came; undefined for causes that the tenant must not see. */
  readonly explain: (error: unknown) => string | undefined;
  readonly now?: () => number;
}

/** The request: the same id and the same bytes at every try. */
export type EventMessage = Pick<EventRecord, 'id' | 'type' | 'timestamp' | 'data'>;

export interface SentEvent extends EventTry {
  /** The endpoint refuses all further events for good. */
  readonly isGone: boolean;
  readonly retryAfterMs: number;
}

const GONE = 410;

/**
 * One attempt at notifying an endpoint, signed according to Standard Webhooks. A redirect is a failure: a request
 * signed for one URL goes to no other.
 */
export class EventSender {
  readonly #options: EventSenderOptions;

  constructor(options: EventSenderOptions) {
    this.#options = options;
  }

  /** Rejects only with the reason of the signal. */
  async send({ url, secrets }: OpenEndpoint, { id, type, timestamp, data }: EventMessage, signal: AbortSignal): Promise<SentEvent> {
    const body = JSON.stringify({ type, timestamp, data });
    const startedMs = this.#nowMs();
    const at = new Date(startedMs);
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'Concierge/1.0',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(startedMs / 1000)),
      'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(' '),
    };
    const facts = (): Pick<SentEvent, 'at' | 'ms'> => ({ at: at.toISOString(), ms: Math.max(0, Math.round(this.#nowMs() - startedMs)) });
    try {
      const response = await this.#options.fetch(url, { method: 'POST', headers, body, redirect: 'error', signal });
      // The body of the response is not used.
      await response.body?.cancel();
      const { status } = response;
      const retryAfter = retryAfterMs(response.headers.get('retry-after'), this.#nowMs());
      return {
        ...facts(),
        status,
        error: response.ok ? null : `It answered ${String(status)}.`,
        isGone: status === GONE,
        retryAfterMs: retryAfter,
      };
    } catch (error) {
      signal.throwIfAborted();
      return { ...facts(), status: null, error: this.#options.explain(error) ?? 'The request failed.', isGone: false, retryAfterMs: 0 };
    }
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** Lets an owner test whether an endpoint works. */
export function testMessage(tenantId: string): EventMessage {
  const timestamp = new Date().toISOString();
  return { id: `e_test_${randomBytes(12).toString('hex')}`, type: 'endpoint.test', timestamp, data: { tenant: tenantId } };
}

/** Limits for the guarded `fetch`. */
export const eventFetchPolicy = { timeoutMs: limits.eventTimeoutMs, maxRedirects: 0 } as const;
