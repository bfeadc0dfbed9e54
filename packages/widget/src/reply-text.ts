/** What a reader of a visitor's stream makes of it. */
export type ReplyEvent =
  | { readonly type: 'session'; readonly turnId: string }
  | { readonly type: 'text_delta'; readonly delta: string }
  | { readonly type: 'step' }
  | { readonly type: 'text_reset'; readonly all: boolean }
  | { readonly type: 'done'; readonly finishReason: string }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

/** The agent's words in one turn, put together from events: paragraphs between its steps, the last of which may be taken back. */
export class ReplyText {
  #settled: string[] = [];
  #open = '';

  get text(): string {
    return [...this.#settled, this.#open].filter((part) => part !== '').join('\n\n');
  }

  add(event: ReplyEvent): void {
    switch (event.type) {
      case 'text_delta': {
        this.#open += event.delta;
        return;
      }
      case 'step': {
        this.#settled.push(this.#open);
        this.#open = '';
        return;
      }
      case 'text_reset': {
        this.#open = '';
        if (event.all) this.#settled = [];
        return;
      }
      case 'session':
      case 'done':
      case 'error': {
        return;
      }
    }
  }
}
