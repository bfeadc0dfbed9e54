import type { TurnEvent, VisitorEvent } from '@concierge/contract';

/**
 * The agent's words in one turn, put together from events: a paragraph for each step, without what a `text_reset`
 * made void.
 */
export class ReplyText {
  #settled: string[] = [];
  #open = '';

  /** Everything so far, steps apart by a blank line. */
  get text(): string {
    return [...this.#settled, this.#open].filter((part) => part !== '').join('\n\n');
  }

  add(event: TurnEvent | VisitorEvent): void {
    if (event.type === 'text_delta') this.#open += event.data.delta;
    if (event.type === 'tool_result' || event.type === 'step') {
      this.#settled.push(this.#open);
      this.#open = '';
    }
    if (event.type === 'text_reset') {
      this.#open = '';
      if ('all' in event.data ? event.data.all : event.data.reason === 'stream_lost') this.#settled = [];
    }
  }
}
