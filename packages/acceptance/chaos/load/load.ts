import { setTimeout as wait } from 'node:timers/promises';
import type { TenantKeys } from '@concierge/testing';
import type { Evidence, ReaderName } from '../audit/evidence.ts';
import type { PlannedConversation } from './load-plan.ts';
import { ReplyReader } from './reply-reader.ts';
import { toLoadMessage, type TurnRequest } from './request.ts';
import type { SeededRandom } from './seeded-random.ts';
import { TurnReader, type Admission, type Question, type ReaderOptions } from './turn-reader.ts';

/** Probability that another client reads a turn as well, through another gateway. */
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

interface ReceivedMessage {
  readonly conversation: PlannedConversation;
  readonly number: number;
  readonly request: TurnRequest;
  readonly sessionId: string | null;
}

/** How one message is sent, in a separate conversation. */
export interface Asking {
  readonly request: TurnRequest;
  readonly tenantId: string;
  readonly form: 'events' | 'json' | 'completion' | 'completionStream';
  /** With `events`, the client goes away in the middle, and resumes after this. */
  readonly pause?: ReaderOptions['pause'];
}

interface Answered {
  readonly marker: string;
  readonly apiKey: string;
  readonly sessionId: string;
  readonly question: Question;
}

const replyReaders = { json: 'jsonAsker', completion: 'completionAsker', completionStream: 'completionStreamer' } as const;

/**
 * Real HTTP clients over all gateways. Within a conversation the next message is sent once the one before it has been
 * acknowledged, and not before: that is the order which the auditor holds the session to.
 */
export class Load {
  readonly #options: LoadOptions;
  readonly #reading: Promise<boolean>[] = [];
  readonly #turns = new Map<string, Answered>();

  constructor(options: LoadOptions) {
    this.#options = options;
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

  /** One message by a contact that sends nothing else, read to its end. */
  async askOnce({ request, tenantId, form, pause }: Asking, giveUp: AbortSignal): Promise<void> {
    const { marker } = request;
    const conversation = { name: `once ${marker}`, tenantId, sender: `contact ${marker}`, bursts: [] };
    const apiKey = this.#keyFor(conversation);
    const question = questionIn(form, { conversation, number: 0, request, sessionId: null });
    this.#options.evidence.asked({ marker, conversation: conversation.name, atMs: Date.now() });
    const options = { ...this.#readerOptions(apiKey, marker, giveUp), ...(pause !== undefined && { pause, cuts: 0 }) };
    const admitted = async (admission: Admission | null): Promise<void> => {
      if (admission !== null) this.#acknowledge({ conversation, number: 0, request }, { admission, question, apiKey });
    };
    if (form !== 'events') {
      await admitted(await new ReplyReader({ ...options, name: replyReaders[form] }, question).read());
      return;
    }
    const reader = new TurnReader(options, { question });
    await Promise.all([reader.read(), admitted(await reader.admitted.catch(() => null))]);
  }

  /**
   * Everything that has not been read again yet, through any gateway: its events from their start, and the answers to
   * the same request, as events and as one JSON object.
   */
  async rereadAll(giveUp: AbortSignal): Promise<void> {
    const left = [...this.#turns];
    this.#turns.clear();
    const rereader = async (): Promise<void> => {
      for (let next = left.pop(); next !== undefined && !giveUp.aborted; next = left.pop()) await this.#reread(next[0], next[1], giveUp);
    };
    await Promise.all(Array.from({ length: REREADERS }, rereader));
  }

  async #reread(turnId: string, { marker, apiKey, sessionId, question }: Answered, giveUp: AbortSignal): Promise<void> {
    const named = (name: ReaderName): ReaderOptions => ({ ...this.#readerOptions(apiKey, marker, giveUp), name, cuts: 0, takesNo: true });
    await new TurnReader(named('rereader'), { turnId }).read();
    if (question.path.startsWith('/v1/')) return;
    await new TurnReader(named('retrier'), { question }).read();
    await new ReplyReader(named('jsonRetrier'), { ...question, accept: 'application/json' }, { turnId, sessionId }).read();
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
  async #say(said: ReceivedMessage, giveUp: AbortSignal): Promise<string | null> {
    const { evidence, random } = this.#options;
    const { conversation, number, request } = said;
    const { marker } = request;
    const apiKey = this.#keyFor(conversation);
    const question = toQuestion(said);
    evidence.asked({ marker, conversation: conversation.name, atMs: Date.now() });
    const reader = new TurnReader(this.#readerOptions(apiKey, marker, giveUp), { question });
    this.#reading.push(reader.read());
    const admission = await reader.admitted.catch(() => null);
    if (admission === null) return null;
    const { turnId, sessionId } = admission;
    this.#acknowledge({ conversation, number, request }, { admission, question, apiKey });
    if (random.chance(WATCHED))
      this.#reading.push(new TurnReader({ ...this.#readerOptions(apiKey, marker, giveUp), name: 'watcher' }, { turnId }).read());
    return sessionId;
  }

  #acknowledge(
    { conversation, number, request }: Omit<ReceivedMessage, 'sessionId'>,
    { admission, question, apiKey }: { admission: Admission; question: Question; apiKey: string },
  ): void {
    const { marker, kind } = request;
    const { name, tenantId } = conversation;
    this.#options.evidence.acknowledged({ marker, kind, tenantId, conversation: name, number, ...admission, atMs: Date.now() });
    this.#turns.set(admission.turnId, { marker, apiKey, sessionId: admission.sessionId, question });
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

function toQuestion({ conversation, request, sessionId }: ReceivedMessage): Question {
  const { sender } = conversation;
  const message = toLoadMessage(request);
  const body = sender === null ? { message, ...(sessionId !== null && { contact_id: sessionId }) } : { message, sender };
  return { path: sender === null ? '/api/admin' : '/api/cs', body, idempotencyKey: request.marker };
}

function questionIn(form: Asking['form'], said: ReceivedMessage): Question {
  const question = toQuestion(said);
  if (form === 'events') return question;
  if (form === 'json') return { ...question, accept: 'application/json' };
  const stream = form === 'completionStream';
  const messages = [{ role: 'user', content: toLoadMessage(said.request) }];
  const body = { model: 'cs', user: said.conversation.sender, messages, stream };
  return {
    path: '/v1/chat/completions',
    body,
    idempotencyKey: said.request.marker,
    accept: stream ? 'text/event-stream' : 'application/json',
  };
}
