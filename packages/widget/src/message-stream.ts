import { ConciergeError, ReplyText, streamEvents } from '@concierge/client';
import type { VisitorEvent } from '@concierge/contract';
import type { KeptMessage } from './browser-memory.ts';
import type { Gateway, Who } from './gateway.ts';

export interface MessageStreamOptions {
  readonly gateway: Gateway;
  /** Asked for each request: a token is replaced while the page is open. */
  readonly who: () => Who;
  readonly message: KeptMessage;
  readonly onChange: () => void;
}

/**
 * One message and the answer to it, read over as many connections as it takes: open → done | failed. It is the
 * service's message as soon as it has a turn. A failed one is tried again as a new stream.
 */
export class MessageStream {
  readonly key: string;
  readonly text: string;
  readonly #options: MessageStreamOptions;
  readonly #reply = new ReplyText();
  readonly #left = new AbortController();
  #turnId: string | null;
  #state: 'open' | 'done' | 'failed' = 'open';
  #trouble: string | null = null;

  constructor(options: MessageStreamOptions) {
    this.#options = options;
    ({ key: this.key, text: this.text, turnId: this.#turnId } = options.message);
  }

  get turnId(): string | null {
    return this.#turnId;
  }

  get state(): 'open' | 'done' | 'failed' {
    return this.#state;
  }

  get reply(): string {
    return this.#reply.text;
  }

  /** Why it has failed, in words for the visitor. */
  get trouble(): string | null {
    return this.#trouble;
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

  /** Stops reading; the answer itself goes on at the service. */
  leave(): void {
    this.#left.abort();
  }

  /** Asks the service to stop answering. */
  async stop(): Promise<void> {
    if (this.#turnId !== null && this.#state === 'open') await this.#options.gateway.cancel(this.#options.who(), this.#turnId);
  }

  #take(event: VisitorEvent): void {
    this.#reply.add(event);
    if (event.type === 'error') return this.#fail(event.data.code);
    if (event.type === 'session') this.#turnId = event.data.turnId;
    if (event.type === 'done') this.#state = 'done';
    this.#options.onChange();
  }

  #fail(code: string): void {
    this.#state = 'failed';
    this.#trouble = describeFailure(code);
    this.#options.onChange();
  }
}

const words: Readonly<Record<string, string>> = {
  rate_limited: 'Too many messages in a short time. Please wait a moment.',
  too_many_waiting: 'Several of your messages are still waiting for an answer.',
  invalid_signature: 'Please sign in again to go on.',
  tenant_suspended: 'The chat is closed at the moment.',
  invalid_request: 'This message cannot be sent. It may be too long.',
  not_found: 'This answer is not there any more.',
  cancelled: 'Stopped.',
  unreachable: 'No connection. Please try again.',
};

/** An error's code in words for the visitor. */
export function describeFailure(code: string): string {
  return words[code] ?? 'Something went wrong. Please try again.';
}
