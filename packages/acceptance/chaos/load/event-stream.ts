import { createParser } from 'eventsource-parser';

export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string;
}

/**
 * Server-Sent Events exactly as they come, in pieces that may end anywhere. `@concierge/client` leaves out what comes
 * twice and resumes by itself: the auditor must see just that, and cut where it wants.
 */
export class EventStreamReader {
  readonly #decoder = new TextDecoder();
  readonly #parser;

  constructor(onEvent: (event: ServerSentEvent) => void) {
    this.#parser = createParser({ onEvent: ({ event = 'message', data, id = '' }) => onEvent({ event, data, id }) });
  }

  feed(bytes: Uint8Array): void {
    this.#parser.feed(this.#decoder.decode(bytes, { stream: true }));
  }
}
