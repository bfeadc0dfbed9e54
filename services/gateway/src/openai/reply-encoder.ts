import type { TurnEvent } from '@concierge/contract';
import { readRendered } from '@concierge/turn';
import type { StreamEncoding } from '../sse/event-stream.ts';

/** What every object of a reply repeats. */
export interface ReplyFacts {
  readonly turnId: string;
  readonly contactId: string;
  /** The agent, as the request named it. */
  readonly model: string;
  /** Seconds since the epoch. */
  readonly createdAt: number;
}

/** One message of an event stream. `event` where the protocol names its events. */
export interface Frame {
  readonly event?: string;
  readonly data: object | '[DONE]';
}

/** Encodes turn events in the format of another protocol. */
export interface ReplyEncoder {
  encode(event: TurnEvent): readonly Frame[];
  /** What is sent when the stream ends before the turn does. */
  cutOff(): readonly Frame[];
}

/** An encoder as an event stream uses it: rendered text in, rendered text out. */
export function toStreamEncoding(encoder: ReplyEncoder): StreamEncoding {
  return {
    encode: (sse) =>
      readRendered(sse)
        .flatMap((event) => encoder.encode(event).map((frame) => render(frame)))
        .join(''),
    cutOff: () =>
      encoder
        .cutOff()
        .map((frame) => render(frame))
        .join(''),
  };
}

function render({ event, data }: Frame): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  return `${name}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

/** Stands before text that replaces what a client has already seen. */
export const repeatNotice = '\n\n[The text above was cut off and is void. Again:]\n\n';

/**
 * A turn's text for protocols that cannot take back what they have sent. After a `text_reset` nothing is sent while the
 * new text repeats the void one; where it differs, a line announces that and the void part is sent again.
 */
export class AppendOnlyText {
  /** The text in force: up to the last tool result, and since then. */
  #settled = '';
  #open = '';
  /** The text that the client has, while the text in force is behind it. */
  #shown: string | null = null;
  /** Where the void part begins. */
  #voidFrom = 0;

  /** @returns what is to be sent for this event */
  add(event: TurnEvent): string {
    switch (event.type) {
      case 'text_delta': {
        this.#open += event.data.delta;
        return this.#shown === null ? event.data.delta : this.#catchUp(this.#shown);
      }
      case 'text_reset': {
        this.#reset(event.data.reason === 'stream_lost');
        return '';
      }
      case 'tool_result': {
        this.#settled += this.#open;
        this.#open = '';
        return '';
      }
      case 'done': {
        // The replayed text is shorter than what the client has.
        return this.#shown === null ? '' : this.#repeat();
      }
      case 'session':
      case 'tool_call_start':
      case 'tool_call_progress':
      case 'tool_call_end':
      case 'error': {
        return '';
      }
    }
  }

  get #current(): string {
    return this.#settled + this.#open;
  }

  #reset(fromStart: boolean): void {
    const shown = this.#shown ?? this.#current;
    this.#open = '';
    if (fromStart) this.#settled = '';
    const { length } = this.#settled;
    this.#voidFrom = this.#shown === null ? length : Math.min(this.#voidFrom, length);
    this.#shown = shown === this.#current ? null : shown;
  }

  #catchUp(shown: string): string {
    const current = this.#current;
    if (shown.length > current.length && shown.startsWith(current)) return '';
    if (!current.startsWith(shown)) return this.#repeat();
    this.#shown = null;
    return current.slice(shown.length);
  }

  #repeat(): string {
    this.#shown = null;
    return repeatNotice + this.#current.slice(this.#voidFrom);
  }
}
