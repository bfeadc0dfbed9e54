import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { EventStreamReader } from './event-stream.ts';
import { isLater, noteRefusal } from '../refusals.ts';
import type { Admission, Question, ReaderOptions } from './turn-reader.ts';

/** An answer takes as long as its turn; a connection that is silent for longer than this is dead. */
const ANSWER_TIMEOUT_MS = 60_000;
const OK = 200;

interface Reply {
  readonly turnId: string;
  readonly sessionId: string;
  readonly text: string;
  readonly calls: string[] | null;
  readonly error: string | null;
}

const ChatReply = z.object({
  contact_id: z.string(),
  turnId: z.string(),
  reply: z.string(),
  toolCalls: z.array(z.object({ id: z.string() })),
});
const Completion = z.object({ choices: z.tuple([z.object({ message: z.object({ content: z.string() }) })]) });
const Chunk = z.union([
  z.object({ error: z.object({ code: z.string() }) }),
  z.object({ choices: z.array(z.object({ delta: z.object({ content: z.string().optional() }) })) }),
]);
const Problem = z.object({ code: z.string() });

/**
 * One client that wants the whole answer of a turn in one piece, or as `/v1` streams it: it posts the same request
 * under the same key until it has got one.
 */
export class ReplyReader {
  readonly #options: ReaderOptions;
  readonly #question: Question;
  readonly #known: Pick<Admission, 'turnId' | 'sessionId'> | undefined;

  /** `known`: the turn, for one that asks again for what has been answered before. */
  constructor(options: ReaderOptions, question: Question, known?: Pick<Admission, 'turnId' | 'sessionId'>) {
    this.#options = options;
    this.#question = question;
    this.#known = known;
  }

  /** @returns null when the signal came first */
  async read(): Promise<Admission | null> {
    const { signal, random, evidence, name } = this.#options;
    for (let posts = 1; !signal.aborted; posts += 1) {
      const reply = await this.#ask().catch(() => null);
      if (reply !== null) {
        const { turnId, sessionId, text, calls, error } = reply;
        evidence.transcript(turnId, name, [{ line: 'reply', atMs: Date.now(), text, calls, error }]);
        return { turnId, sessionId, posts };
      }
      await wait(random.between(50, 250), undefined, { signal }).catch(() => undefined);
    }
    return null;
  }

  async #ask(): Promise<Reply | null> {
    const { gateways, apiKey, random, signal } = this.#options;
    const { path, body, idempotencyKey, accept = 'application/json' } = this.#question;
    const gateway = random.pick(gateways);
    const response = await fetch(`${gateway}${path}`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json', 'idempotency-key': idempotencyKey, accept },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
    });
    if (response.status !== OK) return await this.#refused(gateway, response);
    return path.startsWith('/v1/') ? await readCompletion(response) : await readReply(response);
  }

  /** A reader that knows the turn as answered takes every answer but "later" for the last one. */
  async #refused(gateway: string, response: Response): Promise<Reply | null> {
    if (this.#known === undefined || isLater(response.status)) {
      await noteRefusal(this.#options, { gateway, response, method: 'POST' });
      return null;
    }
    const { code } = Problem.parse(await response.json());
    return { ...this.#known, text: '', calls: null, error: code };
  }
}

async function readReply(response: Response): Promise<Reply> {
  const { contact_id: sessionId, turnId, reply: text, toolCalls } = ChatReply.parse(await response.json());
  return { turnId, sessionId, text, calls: toolCalls.map(({ id }) => id), error: null };
}

/** @returns null when a stream broke off before its end */
async function readCompletion(response: Response): Promise<Reply | null> {
  const turnId = response.headers.get('x-concierge-turn-id') ?? '';
  const sessionId = response.headers.get('x-concierge-contact-id') ?? '';
  const ids = { turnId, sessionId, calls: null };
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
    const { choices } = Completion.parse(await response.json());
    return { ...ids, text: choices[0].message.content, error: null };
  }
  let text = '';
  let hasEnded = false;
  let error: string | null = null;
  const events = new EventStreamReader(({ data }) => {
    if (data === '[DONE]') {
      hasEnded = true;
      return;
    }
    const chunk = Chunk.parse(JSON.parse(data));
    if ('error' in chunk) error = chunk.error.code;
    else text += chunk.choices.map(({ delta }) => delta.content ?? '').join('');
  });
  for await (const bytes of response.body ?? []) events.feed(bytes);
  // A gateway that goes down ends its streams with an error of its own; the turn goes on.
  if (error === 'shutting_down' || (!hasEnded && error === null)) return null;
  return { ...ids, text, error };
}
