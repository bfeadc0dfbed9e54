import { setTimeout as wait } from 'node:timers/promises';
import type { TenantKeys } from '@concierge/testing';
import type { Evidence } from './evidence.ts';
import type { PlannedConversation } from './load-plan.ts';
import { messageOf, type TurnRequest } from './request.ts';
import type { SeededRandom } from './seeded-random.ts';
import { TurnReader, type Question, type ReaderOptions } from './turn-reader.ts';

/** Probability that somebody else reads a turn as well, through another gateway. */
const WATCHED = 0.2;
/** Probability that a connection is cut at a random byte. */
const CUTS = 0.5;
/** Last look at every turn when all is over: so many at once. */
const REREADERS = 16;

export interface LoadOptions {
  readonly gateways: readonly string[];
  readonly tenants: ReadonlyMap<string, TenantKeys>;
  readonly evidence: Evidence;
  readonly random: SeededRandom;
}

interface Said {
  readonly conversation: PlannedConversation;
  readonly number: number;
  readonly request: TurnRequest;
  readonly sessionId: string | null;
}

/**
 * Real HTTP clients over all gateways. Within a conversation the next message is sent once the one before it has been
 * acknowledged, and not before: that is the order which the auditor holds the session to.
 */
export class Load {
  readonly #options: LoadOptions;
  readonly #reading: Promise<boolean>[] = [];
  readonly #turns = new Map<string, { marker: string; apiKey: string }>();

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  get acknowledged(): number {
    return this.#turns.size;
  }

  /** Resolves when every turn has been read to its end. `enough` stops new messages; `giveUp` ends everything. */
  async run(
    plan: readonly PlannedConversation[],
    { enough, giveUp }: { readonly enough: AbortSignal; readonly giveUp: AbortSignal },
  ): Promise<void> {
    const began = Date.now();
    await Promise.all(plan.map(async (conversation) => await this.#converse(conversation, { began, enough, giveUp })));
    await Promise.all(this.#reading);
  }

  /** Everything once more from the start, through any gateway. */
  async rereadAll(giveUp: AbortSignal): Promise<void> {
    const left = [...this.#turns];
    const rereader = async (): Promise<void> => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) {
        const [turnId, { marker, apiKey }] = next;
        await new TurnReader({ ...this.#readerOptions(apiKey, marker, giveUp), name: 'rereader', cuts: 0 }, { turnId }).read();
      }
    };
    await Promise.all(Array.from({ length: REREADERS }, rereader));
  }

  async #converse(
    conversation: PlannedConversation,
    { began, enough, giveUp }: { began: number; enough: AbortSignal; giveUp: AbortSignal },
  ): Promise<void> {
    const stop = AbortSignal.any([enough, giveUp]);
    let sessionId: string | null = null;
    let number = 0;
    for (const { atMs, turns } of conversation.bursts) {
      await wait(Math.max(0, began + atMs - Date.now()), undefined, { signal: stop }).catch(() => undefined);
      for (const request of turns) {
        if (stop.aborted) return;
        sessionId = await this.#say({ conversation, number, request, sessionId }, giveUp);
        if (sessionId === null) return;
        number += 1;
      }
    }
  }

  /** @returns the session it belongs to; null when it has not been acknowledged before the end */
  async #say(said: Said, giveUp: AbortSignal): Promise<string | null> {
    const { evidence, random } = this.#options;
    const { conversation, number, request } = said;
    const { marker, kind } = request;
    const apiKey = this.#keyFor(conversation);
    evidence.asked({ marker, conversation: conversation.name, atMs: Date.now() });
    const reader = new TurnReader(this.#readerOptions(apiKey, marker, giveUp), { question: questionOf(said) });
    this.#reading.push(reader.read());
    const admission = await reader.admitted.catch(() => null);
    if (admission === null) return null;
    const { turnId, sessionId, posts } = admission;
    evidence.acknowledged({
      marker,
      kind,
      tenantId: conversation.tenantId,
      conversation: conversation.name,
      number,
      turnId,
      sessionId,
      atMs: Date.now(),
      posts,
    });
    this.#turns.set(turnId, { marker, apiKey });
    if (random.chance(WATCHED))
      this.#reading.push(new TurnReader({ ...this.#readerOptions(apiKey, marker, giveUp), name: 'watcher' }, { turnId }).read());
    return sessionId;
  }

  #readerOptions(apiKey: string, marker: string, signal: AbortSignal): ReaderOptions {
    const { gateways, evidence, random } = this.#options;
    return { gateways, apiKey, evidence, random: random.fork(), name: 'asker', marker, cuts: CUTS, signal };
  }

  #keyFor({ tenantId, sender }: PlannedConversation): string {
    const keys = this.#options.tenants.get(tenantId);
    if (keys === undefined) throw new Error(`no tenant ${tenantId}`);
    return sender === null ? keys.admin : keys.cs;
  }
}

function questionOf({ conversation, request, sessionId }: Said): Question {
  const { sender } = conversation;
  const message = messageOf(request);
  const body = sender === null ? { message, ...(sessionId !== null && { contact_id: sessionId }) } : { message, sender };
  return { path: sender === null ? '/api/admin' : '/api/cs', body, idempotencyKey: request.marker };
}
