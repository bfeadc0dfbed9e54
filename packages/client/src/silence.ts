/** Good answers that cannot have a body (https://fetch.spec.whatwg.org/#null-body-status). */
const withoutContent = new Set([204, 205]);

/**
 * Ends a request whose answer is silent for too long: until it begins, and then from one piece of its body to the next.
 */
export class Silence {
  readonly #limitMs: number;
  readonly #ended = new AbortController();

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Aborts with a TimeoutError when it was silent for too long. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** The outcome of what is waited for, in one silence. */
  async during<Value>(work: Promise<Value>): Promise<Value> {
    const timer = setTimeout(
      () => this.#ended.abort(new DOMException(`Nothing came for ${String(this.#limitMs)} ms.`, 'TimeoutError')),
      this.#limitMs,
    );
    return work.finally(() => clearTimeout(timer));
  }

  /** The answer to a request that has this signal, with a body that may take long as long as something comes. */
  watch(answer: Response): Response {
    // Chromium gives an answer without content a body, with which no answer of that status can be made.
    if (answer.body === null || withoutContent.has(answer.status)) return answer;
    const reader = answer.body.getReader();
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        pull: async (pieces) => {
          const { done, value } = await this.during(reader.read());
          if (done) pieces.close();
          else pieces.enqueue(value);
        },
        cancel: async (reason: unknown) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
    const { status, statusText, headers } = answer;
    return new Response(body, { status, statusText, headers });
  }
}
