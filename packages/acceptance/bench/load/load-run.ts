import { setTimeout as wait } from 'node:timers/promises';
import { HttpConnection, type RawAnswer } from './http-connection.ts';
import type { LoadResult, LoadSpec } from './load-spec.ts';
import { randomBytes } from 'node:crypto';

const markers = {
  model: { firstText: '"content":"some', end: 'data: [DONE]' },
  chat: { firstText: 'event: text_delta', end: 'event: done' },
} as const;

/** After a failure, so that a system that refuses everything is not asked in a tight loop. */
const FAILURE_PAUSE_MS = 50;
const WARM_UP_MAX_MS = 20_000;
const LOOK_EVERY_MS = 50;

/** Keeps so many turns in flight, each slot on a connection of its own, and counts those that end while it measures. */
export class LoadRun {
  readonly #spec: LoadSpec;
  readonly #firstTextMs: number[] = [];
  #turns = 0;
  #ended = 0;
  #failures = 0;
  #firstFailure: string | null = null;
  #state: 'warming' | 'measuring' | 'ending' = 'warming';

  constructor(spec: LoadSpec) {
    this.#spec = spec;
  }

  /** Resolves when every turn has ended. */
  async run(on: { measuring(): void; measured(result: LoadResult): void }): Promise<void> {
    const slots = Promise.all(Array.from({ length: this.#spec.concurrency }, (_, slot) => this.#runSlot(slot)));
    await this.#warmUp();
    this.#state = 'measuring';
    const startedMs = performance.now();
    on.measuring();
    await wait(this.#spec.measureMs);
    const seconds = (performance.now() - startedMs) / 1000;
    this.#state = 'ending';
    on.measured({
      turns: this.#turns,
      seconds,
      firstTextMs: this.#firstTextMs.toSorted((one, other) => one - other),
      failures: this.#failures,
      firstFailure: this.#firstFailure,
    });
    await slots;
  }

  async #warmUp(): Promise<void> {
    const { rampMs, warmUpMs, warmUpTurns } = this.#spec;
    await wait(rampMs + warmUpMs);
    const giveUpMs = performance.now() + WARM_UP_MAX_MS;
    while (this.#ended < warmUpTurns && performance.now() < giveUpMs) await wait(LOOK_EVERY_MS);
  }

  async #runSlot(slot: number): Promise<void> {
    const { ports, apiKeys, kind, concurrency, rampMs } = this.#spec;
    // The turns of a tenant come through every gateway.
    const port = ports[Math.floor(slot / Math.max(1, apiKeys.length)) % ports.length] ?? 0;
    const connection = new HttpConnection(port, markers[kind].firstText);
    const requests = new TurnRequests(this.#spec, slot);
    if (rampMs > 0) await wait((rampMs * slot) / concurrency);
    while (this.#state !== 'ending') await this.#turn(connection, requests.next());
    connection.close();
  }

  async #turn(connection: HttpConnection, request: string): Promise<void> {
    const began = this.#state;
    try {
      const answer = await connection.send(request);
      if (answer.body.includes(markers[this.#spec.kind].end)) this.#count(answer, began);
      else await this.#fail(answer.body.slice(0, 1000));
    } catch (error) {
      connection.close();
      await this.#fail(String(error));
    }
  }

  #count({ firstTextMs }: RawAnswer, began: 'warming' | 'measuring' | 'ending'): void {
    this.#ended += 1;
    if (this.#state !== 'measuring') return;
    this.#turns += 1;
    if (began === 'measuring' && firstTextMs !== undefined) this.#firstTextMs.push(firstTextMs);
  }

  async #fail(why: string): Promise<void> {
    this.#failures += 1;
    this.#firstFailure ??= why;
    if (this.#state !== 'ending') await wait(FAILURE_PAUSE_MS);
  }
}

/** Turns of one conversation before a driver's slot begins the next: about what a support conversation has. */
const TURNS_PER_SESSION = 8;
const message = 'What is the state of my order? It should have been here by now, I think.';

/** The requests of one slot, one after another. */
class TurnRequests {
  readonly #spec: LoadSpec;
  readonly #slot: number;
  readonly #run = randomBytes(6).toString('hex');
  #sent = 0;

  constructor(spec: LoadSpec, slot: number) {
    this.#spec = spec;
    this.#slot = slot;
  }

  next(): string {
    const { kind, apiKeys } = this.#spec;
    this.#sent += 1;
    if (kind === 'model')
      return post('/v1/chat/completions', { model: 'scripted', stream: true, messages: [{ role: 'user', content: message }] });
    const sender = this.#sender();
    return post('/api/cs', { message, sender }, apiKeys[this.#slot % apiKeys.length]);
  }

  #sender(): string {
    const { senders } = this.#spec;
    if (senders !== undefined) {
      const number = Math.floor((this.#sent - 1) / senders.turnsEach) % senders.perSlot;
      return `${senders.prefix}-${String(this.#slot)}-${String(number)}`;
    }
    return `${this.#run}-${String(this.#slot)}-${String(Math.floor((this.#sent - 1) / TURNS_PER_SESSION))}`;
  }
}

function post(path: string, content: object, apiKey?: string): string {
  const body = JSON.stringify(content);
  const key = apiKey === undefined ? '' : `X-API-Key: ${apiKey}\r\n`;
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${key}Content-Type: application/json\r\nContent-Length: ${String(body.length)}\r\n\r\n`;
  return `${head}${body}`;
}
