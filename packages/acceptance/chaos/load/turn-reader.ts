import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { EventStreamReader, type ServerSentEvent } from './event-stream.ts';
import type { Evidence, ReaderName, TranscriptLine } from '../audit/evidence.ts';
import { isLater, noteRefusal } from '../refusals.ts';
import type { SeededRandom } from './seeded-random.ts';

/** A connection without a byte for so long, not even a keep-alive comment, is dead, whatever TCP reports. */
const SILENCE_MS = 20_000;

export interface ReaderOptions {
  readonly gateways: readonly string[];
  readonly apiKey: string;
  readonly evidence: Evidence;
  readonly random: SeededRandom;
  readonly name: ReaderName;
  readonly marker: string;
  /** Probability that a connection is cut at a random byte. */
  readonly cuts: number;
  readonly signal: AbortSignal;
  /** The turn has been answered already: every answer but "later" is the last one. */
  readonly takesNo?: boolean;
  /** Goes away after so many events, and resumes when the promise has resolved. */
  readonly pause?: { readonly afterEvents: number; readonly until: Promise<void> };
}

/** What is posted until it has been acknowledged; undefined for a reader of a turn that is on its way already. */
export interface Question {
  readonly path: string;
  readonly body: object;
  readonly idempotencyKey: string;
  readonly accept?: string;
}

export interface Admission {
  readonly turnId: string;
  readonly sessionId: string;
  readonly posts: number;
}

const SessionData = z.object({ contact_id: z.string(), turnId: z.string() });

interface HttpRequest {
  readonly gateway: string;
  readonly url: string;
  readonly init: RequestInit;
}

/**
 * One client that reads one turn to its end, whatever happens to its connections: it posts again under the same key
 * until it has seen the `session` event, and from then on resumes through any gateway after the last event it has seen
 * whole. asking → reading → ended.
 */
export class TurnReader {
  readonly #options: ReaderOptions;
  readonly #question: Question | undefined;
  readonly #admission = Promise.withResolvers<Admission>();
  #turnId: string | undefined;
  #lastEventId: string | null = null;
  #ended = false;
  #posts = 0;
  #events = 0;
  #paused = false;
  #refusedForGood = false;
  #unwritten: TranscriptLine[] = [];

  constructor(options: ReaderOptions, turn: { readonly question: Question } | { readonly turnId: string }) {
    this.#options = options;
    if ('turnId' in turn) this.#turnId = turn.turnId;
    else this.#question = turn.question;
    // A caller that does not wait for it must not crash on its rejection.
    this.#admission.promise.catch(() => undefined);
  }

  /** Resolves with the `session` event. Rejects when the signal ends the reader before. */
  get admitted(): Promise<Admission> {
    return this.#admission.promise;
  }

  /** Resolves when the terminal event has been seen, to whether it has; false when the signal came first. */
  async read(): Promise<boolean> {
    const { signal, random } = this.#options;
    while (!this.#ended && !this.#refusedForGood && !signal.aborted) {
      const closed = await this.#connect(this.#nextRequest());
      this.#note({ line: 'close', atMs: Date.now(), reason: closed });
      this.#save();
      if (this.#isDue()) await this.#takeABreak();
      if (!this.#ended) await wait(random.between(50, 250), undefined, { signal }).catch(() => undefined);
    }
    this.#admission.reject(new Error(`${this.#options.marker} has not been acknowledged`));
    return this.#ended;
  }

  #nextRequest(): HttpRequest {
    const { gateways, apiKey, random } = this.#options;
    const gateway = random.pick(gateways);
    if (this.#turnId !== undefined) {
      const resume: Record<string, string> = this.#lastEventId === null ? {} : { 'last-event-id': this.#lastEventId };
      return { gateway, url: `${gateway}/api/turns/${this.#turnId}/events`, init: { headers: { 'x-api-key': apiKey, ...resume } } };
    }
    const { path = '', body = {}, idempotencyKey = '' } = this.#question ?? {};
    this.#posts += 1;
    const headers = { 'x-api-key': apiKey, 'content-type': 'application/json', 'idempotency-key': idempotencyKey };
    return { gateway, url: `${gateway}${path}`, init: { method: 'POST', headers, body: JSON.stringify(body) } };
  }

  /** One connection, to its end. @returns why it ended */
  async #connect({ gateway, url, init }: HttpRequest): Promise<string> {
    const { signal, random, cuts } = this.#options;
    const cut = new AbortController();
    let silence = setTimeout(() => cut.abort(), SILENCE_MS);
    let bytesLeft = random.chance(cuts) ? random.between(1, 1500) : Infinity;
    const events = new EventStreamReader((event) => this.#hear(event));
    try {
      const response = await fetch(url, { ...init, signal: AbortSignal.any([signal, cut.signal]) });
      if (response.status !== 200 || response.body === null) return await this.#refused(gateway, response, init.method ?? 'GET');
      this.#note({ line: 'open', atMs: Date.now(), gateway, lastEventId: this.#lastEventId });
      for await (const bytes of response.body) {
        clearTimeout(silence);
        silence = setTimeout(() => cut.abort(), SILENCE_MS);
        events.feed(bytes.subarray(0, bytesLeft));
        bytesLeft -= bytes.length;
        if (bytesLeft <= 0 || this.#isDue()) return 'cut by the client';
      }
      return 'ended by the gateway';
    } catch (error) {
      return cut.signal.aborted ? 'silent' : String(error);
    } finally {
      clearTimeout(silence);
      cut.abort();
    }
  }

  #isDue(): boolean {
    const { pause } = this.#options;
    return pause !== undefined && !this.#paused && !this.#ended && this.#events >= pause.afterEvents;
  }

  async #takeABreak(): Promise<void> {
    const { pause, signal } = this.#options;
    this.#paused = true;
    await Promise.race([pause?.until, once(signal, 'abort')]);
  }

  #hear({ event, data, id }: ServerSentEvent): void {
    // Events that came in one piece with the last one wanted have not been looked at: they come again.
    if (this.#isDue()) return;
    this.#events += 1;
    this.#note({ line: 'event', atMs: Date.now(), event, data, id });
    this.#lastEventId = id;
    if (event === 'session') this.#admit(data);
    if (event === 'done' || event === 'error') this.#ended = true;
  }

  #admit(data: string): void {
    const { turnId, contact_id: sessionId } = SessionData.parse(JSON.parse(data));
    this.#turnId ??= turnId;
    this.#admission.resolve({ turnId, sessionId, posts: this.#posts });
  }

  /** What was refused is asked again. */
  async #refused(gateway: string, response: Response, method: string): Promise<string> {
    await noteRefusal(this.#options, { gateway, response, method });
    this.#refusedForGood = this.#options.takesNo === true && !isLater(response.status);
    return `status ${String(response.status)}`;
  }

  #note(line: TranscriptLine): void {
    this.#unwritten.push(line);
  }

  /** A transcript is named after its turn, whose id is not known before the first event. */
  #save(): void {
    if (this.#turnId === undefined) return;
    this.#options.evidence.transcript(this.#turnId, this.#options.name, this.#unwritten);
    this.#unwritten = [];
  }
}
