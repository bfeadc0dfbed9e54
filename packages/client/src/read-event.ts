import type { FeedChange, TurnEvent, VisitorEvent } from '@concierge/contract';
import { ConciergeError } from './concierge-error.ts';
import { hasFields, parseJson, type Shape } from './has-fields.ts';

/** What the feed of a tenant says; `again`: changes may have been missed, so read everything again. */
export type FeedEvent = FeedChange | { readonly kind: 'again' };

type Shapes<Event extends { readonly type: string; readonly data: object }> = {
  readonly [Type in Event['type']]: Shape<Extract<Event, { readonly type: Type }>['data']>;
};

const turnEvents: Shapes<TurnEvent> = {
  session: { contact_id: 'string', turnId: 'string' },
  text_delta: { delta: 'string' },
  tool_call_start: { id: 'string', name: 'string', input: 'object' },
  tool_call_progress: { id: 'string', name: 'string', delta: 'string' },
  tool_call_end: { id: 'string', name: 'string', durationMs: 'number', isError: 'boolean' },
  tool_result: { id: 'string', name: 'string', output: 'string', isError: 'boolean' },
  text_reset: { reason: 'string' },
  done: { inputTokens: 'number', outputTokens: 'number', finishReason: 'string' },
  error: { code: 'string', message: 'string', retryable: 'boolean', turnId: 'string' },
};

const visitorEvents: Shapes<VisitorEvent> = {
  session: { turnId: 'string' },
  text_delta: { delta: 'string' },
  step: {},
  text_reset: { all: 'boolean' },
  done: { finishReason: 'string' },
  error: { code: 'string', message: 'string', retryable: 'boolean' },
};

const change: Shape<Omit<FeedChange, 'kind'>> = { id: 'string' };
const feedEvents: Readonly<Record<FeedEvent['kind'], object>> = {
  again: {},
  turn: change,
  session: change,
  handoff: change,
  schedule: change,
  delivery: change,
};

/** An event of a turn as `/api` streams it; null for a type that this client does not know. */
export function readTurnEvent(type: string, json: string): TurnEvent | null {
  return readEvent(turnEvents, type, json);
}

/**
 * An event of a turn as the visitors' endpoints (`/widget`) stream it; null for a type that this client does not
 * know.
 */
export function readVisitorEvent(type: string, json: string): VisitorEvent | null {
  return readEvent(visitorEvents, type, json);
}

/** What `/api/feed` sends; null for a kind that this client does not know. */
export function readFeedEvent(type: string, json: string): FeedEvent | null {
  const event = readEvent<{ readonly type: FeedEvent['kind']; readonly data: Omit<FeedChange, 'kind'> }>(feedEvents, type, json);
  if (event === null) return null;
  return event.type === 'again' ? { kind: 'again' } : { ...event.data, kind: event.type };
}

function readEvent<Event>(shapes: Readonly<Record<string, object>>, type: string, json: string): Event | null {
  // A newer service may send more types.
  if (!Object.hasOwn(shapes, type)) return null;
  const event: unknown = { type, data: parseJson(json) };
  if (isEvent<Event>(event, shapes[type] ?? {})) return event;
  const message = `The service sent a ${type} event that this client does not understand.`;
  throw new ConciergeError(message, { status: 200, code: 'unexpected_answer' });
}

function isEvent<Event>(event: unknown, shape: object): event is Event {
  return hasFields<{ data: object }>(event, { data: 'object' }) && hasFields(event.data, shape);
}
