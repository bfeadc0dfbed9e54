/** Good answers that cannot have a body (https://fetch.spec.whatwg.org/#null-body-status). */
const withoutContent = new Set([204, 205]);

/**
 * A silence is waited for in so many parts. A pause in which this page or process itself stood still counts as one of
 * them: timers come before what has arrived.
 */
const PARTS = 3;

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
    const giveUp = (): void => this.#ended.abort(new DOMException(`Nothing came for ${String(this.#limitMs)} ms.`, 'TimeoutError'));
    let parts = 0;
    const endPart = (): void => {
      parts += 1;
      // What has arrived by the end of the last part is read before the request is given up.
      timer = parts < PARTS ? setTimeout(endPart, this.#limitMs / PARTS) : setTimeout(giveUp);
    };
    let timer = setTimeout(endPart, this.#limitMs / PARTS);
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
