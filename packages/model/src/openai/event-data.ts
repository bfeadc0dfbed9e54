/**
 * Reads the `data` of server-sent events out of text that comes in arbitrary pieces (WHATWG HTML, "Server-sent events");
 * names, ids and comments mean nothing in this protocol. The library for it, eventsource-parser, cannot be loaded when the
 * repository runs from source: it too has an export condition named `source`.
 */
export class EventData {
  readonly #onData: (data: string) => void;
  #line = '';
  #data: string | undefined;

  constructor(onData: (data: string) => void) {
    this.#onData = onData;
  }

  /** Calls back for every event that `text` completes. */
  feed(text: string): void {
    if (!/[\r\n]/u.test(text)) {
      this.#line += text;
      return;
    }
    // A CR at the very end may be half of a CRLF.
    const held = text.endsWith('\r') ? '\r' : '';
    const lines = (this.#line + text.slice(0, text.length - held.length)).split(/\r\n|\n|\r/u);
    this.#line = (lines.pop() ?? '') + held;
    for (const line of lines) this.#read(line);
  }

  /** The stream is over: an event that lacks only its blank line counts. */
  end(): void {
    this.feed('\n\n');
  }

  #read(line: string): void {
    if (line === '') this.#dispatch();
    else if (line.startsWith('data:')) {
      const value = line.slice(line.charCodeAt(5) === SPACE ? 6 : 5);
      this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
    }
  }

  #dispatch(): void {
    const data = this.#data;
    this.#data = undefined;
    if (data !== undefined && data !== '') this.#onData(data);
  }
}

const SPACE = 0x20;
