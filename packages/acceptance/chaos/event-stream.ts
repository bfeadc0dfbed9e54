export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string;
}

/**
 * Reads Server-Sent Events as they arrive, in pieces that may end anywhere (WHATWG HTML, "Interpreting an event stream"). An event
 * counts once its blank line is here: one that was cut off has not been seen.
 */
export class EventStreamReader {
  readonly #onEvent: (event: ServerSentEvent) => void;
  readonly #decoder = new TextDecoder();
  #unread = '';

  constructor(onEvent: (event: ServerSentEvent) => void) {
    this.#onEvent = onEvent;
  }

  feed(bytes: Uint8Array): void {
    this.#unread += this.#decoder.decode(bytes, { stream: true });
    for (let end = this.#unread.indexOf('\n\n'); end !== -1; end = this.#unread.indexOf('\n\n')) {
      const block = this.#unread.slice(0, end);
      this.#unread = this.#unread.slice(end + 2);
      this.#read(block);
    }
  }

  #read(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      const [, name = '', value = ''] = /^([^:]*): ?(.*)$/u.exec(line) ?? [];
      // A line that begins with a colon is a comment: a sign of life.
      if (name !== '') fields.set(name, value);
    }
    const data = fields.get('data');
    if (data !== undefined) this.#onEvent({ event: fields.get('event') ?? 'message', data, id: fields.get('id') ?? '' });
  }
}
