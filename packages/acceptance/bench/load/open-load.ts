import { setTimeout as wait } from 'node:timers/promises';
import { HttpConnection } from './http-connection.ts';

/** One turn of an open load: it comes at its time, whatever becomes of those before. */
export interface DueTurn {
  readonly atMs: number;
  readonly tenant: number;
  /** Its contact: turns of one are of one conversation. */
  readonly sender: string;
  readonly modelMs: number;
}

/** Plain data: it goes to a process of its own. */
export interface OpenSpec {
  /** Used in turn: gateways of one system. */
  readonly ports: readonly number[];
  /** One for each tenant. */
  readonly apiKeys: readonly string[];
  readonly turns: readonly DueTurn[];
  readonly warmUpMs: number;
  readonly measureMs: number;
}

export interface OpenResult {
  /** Turns that ended while it measured, and for how long that was. */
  readonly turns: number;
  readonly seconds: number;
  /** From when these were due to their ends; ms, ascending. */
  readonly turnMs: readonly number[];
  readonly failures: number;
  readonly firstFailure: string | null;
}

const END = 'event: done';

/** Sends each turn when it is due. One that it sends late counts from when it was due. */
export class OpenLoad {
  readonly #spec: OpenSpec;
  /** Connections that wait for their next turn, for each gateway. */
  readonly #idle: HttpConnection[][];
  readonly #turnMs: number[] = [];
  #isMeasuring = false;
  #failures = 0;
  #firstFailure: string | null = null;

  constructor(spec: OpenSpec) {
    this.#spec = spec;
    this.#idle = spec.ports.map(() => []);
  }

  /** Resolves when every turn has ended. */
  async run(on: { measuring(): void; measured(result: OpenResult): void }): Promise<void> {
    const { turns, warmUpMs, measureMs } = this.#spec;
    const startedMs = performance.now();
    const sent = this.#sendAll(turns, startedMs);
    await wait(warmUpMs);
    [this.#isMeasuring] = [true];
    const measuringMs = performance.now();
    on.measuring();
    await wait(measureMs);
    this.#isMeasuring = false;
    on.measured({
      turns: this.#turnMs.length,
      seconds: (performance.now() - measuringMs) / 1000,
      turnMs: this.#turnMs.toSorted((one, other) => one - other),
      failures: this.#failures,
      firstFailure: this.#firstFailure,
    });
    await sent;
    for (const connection of this.#idle.flat()) connection.close();
  }

  async #sendAll(turns: readonly DueTurn[], startedMs: number): Promise<void> {
    const answers: Promise<void>[] = [];
    for (const [number, turn] of turns.entries()) {
      const dueMs = startedMs + turn.atMs;
      const aheadMs = dueMs - performance.now();
      if (aheadMs > 0) await wait(aheadMs);
      answers.push(this.#send(turn, { dueMs, gateway: number % this.#spec.ports.length }));
    }
    await Promise.all(answers);
  }

  async #send(turn: DueTurn, { dueMs, gateway }: { readonly dueMs: number; readonly gateway: number }): Promise<void> {
    const idle = this.#idle[gateway] ?? [];
    const connection = idle.pop() ?? new HttpConnection(this.#spec.ports[gateway] ?? 0, END);
    try {
      const { body } = await connection.send(this.#request(turn));
      if (!body.includes(END)) this.#fail(body.slice(0, 1000));
      else if (this.#isMeasuring) this.#turnMs.push(performance.now() - dueMs);
      idle.push(connection);
    } catch (error) {
      connection.close();
      this.#fail(String(error));
    }
  }

  #fail(why: string): void {
    this.#failures += 1;
    this.#firstFailure ??= why;
  }

  /** The bench's model takes as long as the message says (`model-main.ts`). */
  #request({ tenant, sender, modelMs }: DueTurn): string {
    const message = `What is the state of my order? It should have been here by now, I think. [model takes ${String(Math.round(modelMs))} ms]`;
    const body = JSON.stringify({ message, sender });
    const head = `POST /api/cs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${this.#spec.apiKeys[tenant] ?? ''}\r\nContent-Type: application/json`;
    return `${head}\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`;
  }
}
