import type { IncomingMessage } from 'node:http';

/** How much may stay unread here before the connection is paused. */
const MAX_UNREAD_CHARACTERS = 1024 * 1024;
/** How long the rest of an answer we no longer need may take before its connection is given up. */
const DRAIN_MS = 1000;

/**
 * Text of a response as it comes. One `read` returns everything that has arrived, so that whatever came together is
 * handled together. One reader at a time.
 */
export class StreamedBody {
  readonly #message: IncomingMessage;
  #unread = '';
  #outcome: { ended: true } | { error: Error } | undefined;
  #wake: (() => void) | undefined;

  constructor(message: IncomingMessage) {
    this.#message = message;
    message.setEncoding('utf8');
    message.on('data', (text: string) => this.#arrived(text));
    message.on('end', () => this.#settle({ ended: true }));
    message.on('error', (error) => this.#settle({ error }));
    message.on('close', () => this.#settle({ error: new Error('the connection was closed') }));
  }

  /** Undefined at the end. Rejects when the connection broke, after handing out what came before. */
  async read(): Promise<string | undefined> {
    if (this.#unread === '' && this.#outcome === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    if (this.#unread !== '') return this.#take();
    if (this.#outcome !== undefined && 'error' in this.#outcome) throw this.#outcome.error;
    return undefined;
  }

  /** The rest as one text, cut at `maxCharacters`. */
  async readAll(maxCharacters: number): Promise<string> {
    let text = '';
    for (let piece = await this.read(); piece !== undefined && text.length < maxCharacters; piece = await this.read()) text += piece;
    this.close();
    return text.slice(0, maxCharacters);
  }

  /** Ends the reading. A connection whose answer ends by itself within a second is kept for the next request. */
  close(): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = { ended: true };
    this.#message.removeAllListeners('data');
    this.#message.resume();
    const timer = setTimeout(() => this.#message.destroy(), DRAIN_MS);
    timer.unref();
    this.#message.once('close', () => clearTimeout(timer));
  }

  /** Ends the reading and stops the other side: the connection is cut. */
  abandon(): void {
    this.#outcome ??= { ended: true };
    if (!this.#message.complete) this.#message.destroy();
  }

  #arrived(text: string): void {
    this.#unread += text;
    if (this.#unread.length > MAX_UNREAD_CHARACTERS) this.#message.pause();
    this.#notify();
  }

  #take(): string {
    const text = this.#unread;
    this.#unread = '';
    if (this.#message.isPaused()) this.#message.resume();
    return text;
  }

  #settle(outcome: { ended: true } | { error: Error }): void {
    this.#outcome ??= outcome;
    this.#notify();
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
