import { ConciergeError, ReplyText, streamEvents } from '@concierge/client';
import type { VisitorEvent } from '@concierge/contract';
import type { KeptMessage } from './browser-memory.ts';
import { wordsFor } from './failure.ts';
import type { Gateway, Who } from './gateway.ts';

export interface ExchangeOptions {
  readonly gateway: Gateway;
  /** Asked for each request: a token is replaced while the page is open. */
  readonly who: () => Who;
  readonly message: KeptMessage;
  readonly onChange: () => void;
}

/**
 * One message and the answer to it, followed over as many connections as it takes. sending → answering (the service has
 * it) → done | failed; sending → failed. A failed one is tried again as a new exchange.
 */
export class MessageStream {
  readonly key: string;
  readonly text: string;
  readonly #options: ExchangeOptions;
  readonly #reply = new ReplyText();
  readonly #left = new AbortController();
  #turnId: string | null;
  #trouble: string | null = null;
  #state: 'sending' | 'answering' | 'done' | 'failed';

  constructor(options: ExchangeOptions) {
    this.#options = options;
    ({ key: this.key, text: this.text, turnId: this.#turnId } = options.message);
    this.#state = this.#turnId === null ? 'sending' : 'answering';
  }

  get state(): 'sending' | 'answering' | 'done' | 'failed' {
    return this.#state;
  }

  get turnId(): string | null {
    return this.#turnId;
  }

  get reply(): string {
    return this.#reply.text;
  }

  /** Why it has failed, in words for the visitor. */
  get trouble(): string | null {
    return this.#trouble;
  }

  get isOpen(): boolean {
    return this.#state === 'sending' || this.#state === 'answering';
  }

  /** Resolves when it is done, has failed, or was left. Never rejects. */
  async run(): Promise<void> {
    const { gateway, who } = this.#options;
    const { signal } = this.#left;
    try {
      for await (const event of streamEvents(gateway.turn(who, this), this.#turnId, { signal })) this.#take(event);
    } catch (error) {
      if (!signal.aborted) this.#fail(ConciergeError.from(error).code);
    }
  }

  /** Stops following; the answer itself goes on at the service. */
  leave(): void {
    this.#left.abort();
  }

  /** Asks the service to stop answering. */
  async stop(): Promise<void> {
    if (this.#turnId !== null && this.isOpen) await this.#options.gateway.cancel(this.#options.who(), this.#turnId);
  }

  #take(event: VisitorEvent): void {
    this.#reply.add(event);
    if (event.type === 'session') {
      this.#turnId = event.data.turnId;
      this.#state = 'answering';
    }
    if (event.type === 'done') this.#state = 'done';
    if (event.type === 'error') this.#fail(event.data.code);
    else this.#options.onChange();
  }

  #fail(code: string): void {
    this.#trouble = wordsFor(code);
    this.#state = 'failed';
    this.#options.onChange();
  }
}
