import type { TurnEvent } from '@concierge/contract';

/** Stands before text that replaces what a client has already seen. */
export const tellsAgain = '\n\n[The text above was cut off and is void. Again:]\n\n';

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
        return this.#shown === null ? '' : this.#tellAgain();
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

  get #told(): string {
    return this.#settled + this.#open;
  }

  #reset(fromStart: boolean): void {
    const shown = this.#shown ?? this.#told;
    this.#open = '';
    if (fromStart) this.#settled = '';
    const { length } = this.#settled;
    this.#voidFrom = this.#shown === null ? length : Math.min(this.#voidFrom, length);
    this.#shown = shown === this.#told ? null : shown;
  }

  #catchUp(shown: string): string {
    const told = this.#told;
    if (shown.length > told.length && shown.startsWith(told)) return '';
    if (!told.startsWith(shown)) return this.#tellAgain();
    this.#shown = null;
    return told.slice(shown.length);
  }

  #tellAgain(): string {
    this.#shown = null;
    return tellsAgain + this.#told.slice(this.#voidFrom);
  }
}
