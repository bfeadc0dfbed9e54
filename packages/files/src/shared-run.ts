/**
 * A task that many wait for at once. At most one run is in flight, and all callers that ask meanwhile share the next
 * one: what a caller gets was begun after the caller asked.
 */
export class SharedRun<T> {
  readonly #task: () => Promise<T>;
  #running: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(task: () => Promise<T>) {
    this.#task = task;
  }

  get isIdle(): boolean {
    return this.#running === undefined && this.#next === undefined;
  }

  async run(): Promise<T> {
    if (this.#next !== undefined) return this.#next;
    if (this.#running === undefined) return this.#start();
    const ended = this.#running.then(
      () => undefined,
      () => undefined,
    );
    this.#next = ended.then(async () => {
      this.#next = undefined;
      return this.#start();
    });
    return this.#next;
  }

  async #start(): Promise<T> {
    const running = this.#task();
    this.#running = running;
    try {
      return await running;
    } finally {
      if (this.#running === running) this.#running = undefined;
    }
  }
}
