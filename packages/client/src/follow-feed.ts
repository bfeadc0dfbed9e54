import type { FeedChange } from '@concierge/contract';
import { ConciergeError } from './concierge-error.ts';
import { hasFields, parseJson, type Shape } from './has-fields.ts';
import { waitToRetry, type RetryOptions } from './retries.ts';
import { readMessages } from './stream-events.ts';

/** What the feed of a tenant says; `again`: changes may have been missed, so read everything again. */
export type FeedEvent = FeedChange | { readonly kind: 'again' };

const kinds: Readonly<Record<FeedChange['kind'], true>> = { turn: true, session: true, handoff: true, schedule: true, delivery: true };
const changeShape: Shape<FeedChange> = { kind: 'string', id: 'string' };

/**
 * Reads the feed over as many connections as it takes, until the signal: the service ends each after some minutes.
 * @throws ConciergeError what is refused for good, or the last failure after too many in a row; the signal's reason
 * when aborted
 */
export async function* readFeed(
  open: (connection: AbortSignal) => Promise<Response>,
  options: RetryOptions,
): AsyncGenerator<FeedEvent, never> {
  let failures = 0;
  for (;;) {
    let failure = new ConciergeError('The feed ended.', { status: 0, code: 'unreachable' });
    try {
      for await (const { event: type = 'message', data } of readMessages(open, options.signal)) {
        options.signal?.throwIfAborted();
        failures = 0;
        const event = readFeedEvent(type, data);
        if (event !== null) yield event;
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      failure = ConciergeError.from(error);
      if (!failure.retryable) throw failure;
    }
    failures += 1;
    await waitToRetry(failures, failure, options);
  }
}

/** Null for a kind that this client does not know: a newer service may send more. */
function readFeedEvent(type: string, json: string): FeedEvent | null {
  if (type === 'again') return { kind: 'again' };
  if (!Object.hasOwn(kinds, type)) return null;
  const data = parseJson(json);
  const change: unknown = typeof data === 'object' ? { ...data, kind: type } : null;
  if (hasFields<FeedChange>(change, changeShape)) return change;
  throw new ConciergeError(`The service sent a ${type} change that this client does not understand.`, {
    status: 200,
    code: 'unexpected_answer',
  });
}
