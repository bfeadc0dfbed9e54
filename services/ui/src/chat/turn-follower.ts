import { isTerminalEvent, limits, type TurnEvent } from '@concierge/contract';
import { toFailure, type ChatFailure } from './chat-failure.ts';
import type { TurnLink } from './chat-turn.ts';
import { readTurnEvents, type ReadEvent } from './read-turn-events.ts';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
/** Attempts in a row without a single new event before the person is asked. */
const MAX_ATTEMPTS = 40;
/** The service says something at every heartbeat; three missed ones are a dead connection that nobody has noticed. */
const SILENCE_MS = limits.sseHeartbeatMs * 3;

export interface TurnSource {
  /** Opens the stream of the turn, after the event with this id or from its start; asks for the turn itself the first time. */
  readonly open: (after: string | null, signal: AbortSignal) => Promise<Response>;
  readonly onEvent: (event: TurnEvent) => void;
  readonly onLink: (link: TurnLink) => void;
  /** Whether it is worth asking again after this failure. */
  readonly mayPass: (failure: ChatFailure) => boolean;
  /** Ends the following; the turn itself goes on at the service. */
  readonly signal: AbortSignal;
  /** Resolves after the time, or sooner when there is reason to hope (the network is back); rejects when aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** `ended`: the last event came. `left`: the signal was aborted. `refused`: the service will not give the stream. `lost`: gave up. */
export type FollowOutcome =
  | { readonly kind: 'ended' }
  | { readonly kind: 'left' }
  | { readonly kind: 'refused'; readonly failure: ChatFailure }
  | { readonly kind: 'lost'; readonly failure: ChatFailure };

/** Milliseconds before the attempt with this number (from 1), doubling, with up to a fifth of jitter. */
export function resumeDelayMs(attempt: number, random: () => number = Math.random): number {
  const delay = Math.min(FIRST_DELAY_MS * 2 ** Math.min(attempt - 1, 10), LONGEST_DELAY_MS);
  return Math.round(delay * (1 + random() * 0.2));
}

/**
 * Follows one turn to its end over as many connections as it takes: resumes after the last event that was seen and hands on
 * each event once, in order.
 */
export class TurnFollower {
  readonly #source: TurnSource;
  readonly #seen = new Set<string>();
  #after: string | null = null;
  #ended = false;
  #attempts = 0;

  constructor(source: TurnSource) {
    this.#source = source;
  }

  async follow(): Promise<FollowOutcome> {
    const { signal, wait, onLink, mayPass } = this.#source;
    let failure = toFailure(undefined);
    while (this.#attempts <= MAX_ATTEMPTS) {
      try {
        await this.#readOnce();
        if (this.#ended) return { kind: 'ended' };
      } catch (error) {
        if (signal.aborted) return { kind: 'left' };
        failure = toFailure(error);
        if (!mayPass(failure)) return { kind: 'refused', failure };
      }
      this.#attempts += 1;
      onLink('reconnecting');
      await wait(failure.retryAfterMs ?? resumeDelayMs(this.#attempts), signal).catch(() => undefined);
      if (signal.aborted) return { kind: 'left' };
    }
    onLink('lost');
    return { kind: 'lost', failure };
  }

  async #readOnce(): Promise<void> {
    const connection = new AbortController();
    const signal = AbortSignal.any([this.#source.signal, connection.signal]);
    let silence: ReturnType<typeof setTimeout> | undefined;
    const heard = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => {
        connection.abort(new Error('the connection went silent'));
      }, SILENCE_MS);
    };
    try {
      heard();
      const response = await this.#source.open(this.#after, signal);
      if (response.body !== null) await readTurnEvents(response.body, { onBytes: heard, onEvent: (read) => this.#hand(read) });
    } finally {
      clearTimeout(silence);
      connection.abort();
    }
  }

  #hand({ id, event }: ReadEvent): void {
    if (this.#ended || this.#source.signal.aborted || (id !== null && this.#seen.has(id))) return;
    if (id !== null) {
      this.#seen.add(id);
      this.#after = id;
    }
    this.#attempts = 0;
    this.#source.onLink('live');
    this.#ended = isTerminalEvent(event);
    this.#source.onEvent(event);
  }
}
