import type { TurnEvent, VisitorEvent } from '@concierge/contract';
import { createParser, type EventSourceMessage as ReceivedMessage } from 'eventsource-parser';
import type { ConciergeError } from './concierge-error.ts';
import { readFeedEvent, type FeedEvent } from './read-event.ts';
import { repeatReading, type RetryOptions } from './retries.ts';

/** The service sends something every 15 s; after three misses the connection is dead, even if TCP has not noticed. */
export const SILENCE_MS = 45_000;

const NO_CONTENT = 204;
const TOO_MANY_REQUESTS = 429;

/** An event with its id: another reader can go on after it. */
export type Streamed<Event> = Event & { readonly id: string | null };

/** Where one turn is read. */
export interface TurnSource<Event extends TurnEvent | VisitorEvent> {
  /**
   * Opens the events of the turn after a position. Without a turn: sends the message, under the same Idempotency-Key
   * each time.
   */
  open(position: StreamPosition, signal: AbortSignal): Promise<Response>;
  /** The event; null for a type that is not known. @throws when it is not what the interface promises */
  read(type: string, json: string): Event | null;
}

export interface StreamPosition {
  /** Null until the `session` event has named the turn. */
  readonly turnId: string | null;
  /** The last event that was read; null for the start. */
  readonly after: string | null;
}

export interface StreamOptions extends RetryOptions {
  /** Goes on after this event of a stream that was read before. */
  readonly after?: string | null | undefined;
}

/**
 * Reads one turn to its end over as many connections as it takes: resumes after the last event and yields each event
 * once, in order; `done` or `error` is the last one. `turnId` is null for a message that is still to be sent.
 * @throws ConciergeError what the service refused, or the last failure after too many in a row; the signal's reason
 * when aborted
 */
export async function* streamEvents<Event extends TurnEvent | VisitorEvent>(
  source: TurnSource<Event>,
  turnId: string | null,
  options: StreamOptions = {},
): AsyncGenerator<Streamed<Event>, void> {
  const turn: TurnProgress = { turnId, after: options.after ?? null, seen: new Set() };
  // A turn that was accepted goes on: its reader may wait until it may ask again. For a new message the caller decides.
  const isWorthRetrying = ({ isTransient, status }: ConciergeError): boolean =>
    isTransient || (status === TOO_MANY_REQUESTS && turn.turnId !== null);
  for await (const event of repeatReading(() => readConnection(source, turn, options.signal), isWorthRetrying, options)) {
    if (event === null) return;
    yield event;
    if (event.type === 'done' || event.type === 'error') return;
  }
}

/** What is known of one turn over all connections: where it is, and what was seen of it. */
interface TurnProgress {
  turnId: string | null;
  after: string | null;
  readonly seen: Set<string>;
}

/** The events of one connection that were not seen before; null: nothing comes after those that were. */
async function* readConnection<Event extends TurnEvent | VisitorEvent>(
  source: TurnSource<Event>,
  turn: TurnProgress,
  signal: AbortSignal | undefined,
): AsyncGenerator<Streamed<Event> | null, void> {
  let isOver = false;
  const open = async (connection: AbortSignal): Promise<Response> => {
    const response = await source.open({ turnId: turn.turnId, after: turn.after }, connection);
    isOver = response.status === NO_CONTENT;
    return response;
  };
  for await (const { id = null, event: type = 'message', data } of readMessages(open, signal)) {
    if (id !== null) {
      if (turn.seen.has(id)) continue;
      turn.seen.add(id);
      turn.after = id;
    }
    const event = source.read(type, data);
    if (event === null) continue;
    if (event.type === 'session') turn.turnId = event.data.turnId;
    yield { ...event, id };
  }
  if (isOver) yield null;
}

/** The changes that one connection to the feed of a tenant brings. */
export async function* readChanges(
  open: (connection: AbortSignal) => Promise<Response>,
  signal: AbortSignal | undefined,
): AsyncGenerator<FeedEvent, void> {
  for await (const { event: type = 'message', data } of readMessages(open, signal)) {
    const event = readFeedEvent(type, data);
    if (event !== null) yield event;
  }
}

/** The messages of one connection, to its end. An event that was cut off before its blank line is not one. */
async function* readMessages(
  open: (connection: AbortSignal) => Promise<Response>,
  signal: AbortSignal | undefined,
): AsyncGenerator<ReceivedMessage, void> {
  signal?.throwIfAborted();
  const connection = new AbortController();
  const leave = (): void => connection.abort(signal?.reason);
  // Not AbortSignal.any: the widget runs in browsers that lack it.
  signal?.addEventListener('abort', leave);
  try {
    const reader = (await unlessSilent(open(connection.signal), connection)).body?.getReader();
    if (reader === undefined) return;
    const messages: ReceivedMessage[] = [];
    const parser = createParser({ onEvent: (message) => messages.push(message) });
    const decoder = new TextDecoder();
    // Not `for await`: Safari's streams cannot be iterated.
    for (let read = await unlessSilent(reader.read(), connection); !read.done; read = await unlessSilent(reader.read(), connection)) {
      parser.feed(decoder.decode(read.value, { stream: true }));
      for (const message of messages.splice(0)) {
        signal?.throwIfAborted();
        yield message;
      }
    }
  } finally {
    signal?.removeEventListener('abort', leave);
    connection.abort();
  }
}

/** Ends the connection when nothing comes. Time that the caller takes between two events does not count. */
async function unlessSilent<Result>(promise: Promise<Result>, connection: AbortController): Promise<Result> {
  const timer = setTimeout(() => connection.abort(new Error('the connection went silent')), SILENCE_MS);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
