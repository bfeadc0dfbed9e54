import type { KeptMessage } from './browser-memory.ts';
import { Failure, toFailure, wordsFor } from './failure.ts';
import { readStream, type Gateway, type StreamedEvent, type Who } from './gateway.ts';
import { ReplyText } from './reply-text.ts';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
/** Attempts in a row without a single new event before the visitor is asked. */
const MAX_ATTEMPTS = 20;
/** The service says something every 15 s; three misses are a dead connection that nobody has noticed. */
const SILENCE_MS = 45_000;

export interface ExchangeOptions {
  readonly gateway: Gateway;
  /** Asked for each request: a token is replaced while the page is open. */
  readonly who: () => Who;
  readonly message: KeptMessage;
  readonly onChange: () => void;
}

/**
 * One message and the answer to it, followed over as many connections as it takes.
 * sending → answering (the service has it) → done | failed; sending → failed. A failed one is tried again as a new exchange.
 */
export class Exchange {
  readonly key: string;
  readonly text: string;
  readonly #options: ExchangeOptions;
  readonly #reply = new ReplyText();
  readonly #left = new AbortController();
  readonly #seen = new Set<string>();
  #turnId: string | null;
  #after: string | null = null;
  #attempts = 0;
  #failure: Failure | null = null;
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

  get failure(): Failure | null {
    return this.#failure;
  }

  get isOpen(): boolean {
    return this.#state === 'sending' || this.#state === 'answering';
  }

  /** Resolves when it is done, has failed, or was left. Never rejects. */
  async run(): Promise<void> {
    while (this.isOpen && !this.#left.signal.aborted) {
      try {
        await this.#readOnce();
        if (this.isOpen) await this.#wait(undefined);
      } catch (error) {
        if (this.#left.signal.aborted) return;
        const failure = toFailure(error);
        if (!failure.passes || this.#attempts >= MAX_ATTEMPTS) this.#fail(failure);
        else await this.#wait(failure.retryAfterMs);
      }
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

  async #readOnce(): Promise<void> {
    const connection = new AbortController();
    const leave = (): void => connection.abort();
    this.#left.signal.addEventListener('abort', leave);
    let silence: ReturnType<typeof setTimeout> | undefined;
    const heard = (): void => {
      clearTimeout(silence);
      silence = setTimeout(leave, SILENCE_MS);
    };
    try {
      heard();
      const { body } = await this.#open(connection.signal);
      if (body !== null) await readStream(body, { onBytes: heard, onEvent: (streamed) => this.#take(streamed) });
    } finally {
      clearTimeout(silence);
      this.#left.signal.removeEventListener('abort', leave);
      connection.abort();
    }
  }

  async #open(signal: AbortSignal): Promise<Response> {
    const { gateway, who } = this.#options;
    if (this.#turnId === null) return gateway.say(who(), this, signal);
    return gateway.follow(who(), { turnId: this.#turnId, after: this.#after }, signal);
  }

  #take({ id, event }: StreamedEvent): void {
    if (!this.isOpen || this.#left.signal.aborted || (id !== null && this.#seen.has(id))) return;
    if (id !== null) {
      this.#seen.add(id);
      this.#after = id;
    }
    this.#attempts = 0;
    this.#reply.add(event);
    if (event.type === 'session') {
      this.#turnId = event.turnId;
      this.#state = 'answering';
    }
    if (event.type === 'done') this.#state = 'done';
    if (event.type === 'error') this.#fail(new Failure(wordsFor(event.code), { code: event.code, passes: false }));
    else this.#options.onChange();
  }

  #fail(failure: Failure): void {
    this.#failure = failure;
    this.#state = 'failed';
    this.#options.onChange();
  }

  async #wait(givenMs: number | undefined): Promise<void> {
    this.#attempts += 1;
    const doubled = Math.min(FIRST_DELAY_MS * 2 ** (this.#attempts - 1), LONGEST_DELAY_MS);
    await new Promise<void>((resolve) => {
      setTimeout(resolve, givenMs ?? doubled * (1 + Math.random() * 0.2));
    });
  }
}
