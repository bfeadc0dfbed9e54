// Work for a stack that is being disturbed: streams whose texts are compared word for word, and a probe whose every
// answer is counted.
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { ConciergeClient, ReplyText } from '@concierge/client';

const PROBES_PER_SECOND = 20;
/** One probe in so many is a turn, answered in one piece. */
const TURN_EVERY = 20;
const PROBE_TIMEOUT_MS = 120_000;

/** What the scripted model answers, so many words one after the other; and the message that asks for it. */
function script({ marker, words, delayMs }) {
  const text = [marker, ...Array.from({ length: words }, (_, index) => `word${index}`)].join(' ');
  return { text, message: `[[say:${text}|chunks=${words}|delay=${delayMs}]]` };
}

/** One streamed turn, read over as many connections as it takes. */
async function readStream(client, { marker, words, delayMs, onText }) {
  const { text, message } = script({ marker, words, delayMs });
  const reply = new ReplyText();
  let ended = 'no end';
  for await (const event of client.streamTurn('cs', { message, sender: marker })) {
    reply.add(event);
    if (event.type === 'text_delta') onText();
    if (event.type === 'done' || event.type === 'error') ended = event.type;
  }
  return reply.text === text ? ended : `${ended}: ${reply.text}`;
}

/** One turn that is asked for once and answered in one piece; `done` with exactly its words. */
export async function askOnce({ url, apiKey }, { marker, words, delayMs }) {
  const { text, message } = script({ marker, words, delayMs });
  const headers = {
    'X-API-Key': apiKey,
    'Idempotency-Key': randomUUID(),
    'Content-Type': 'application/json',
    Accept: 'application/json',
  };
  const answer = await fetch(`${url}/api/cs`, { method: 'POST', headers, body: JSON.stringify({ message, sender: marker }) });
  const body = await answer.text();
  return answer.status === 200 && JSON.parse(body).reply === text ? 'done' : `${answer.status}: ${body}`;
}

/**
 * So many streams at every moment: where one has ended, the next turn begins. `begun` resolves when each has shown its
 * first words; `stop` lets the running ones end, and resolves with how each turn ended, where `done` means with exactly
 * its words.
 */
export function keepStreams({ url, apiKey }, { name, count, words, delayMs }) {
  const begun = Promise.withResolvers();
  const stopped = new AbortController();
  const silent = new Set(Array.from({ length: count }, (_, seat) => seat));
  const ends = [];
  const seats = [...silent].map(async (seat) => {
    const client = new ConciergeClient({ baseUrl: url, apiKey });
    const onText = () => {
      silent.delete(seat);
      if (silent.size === 0) begun.resolve();
    };
    for (let turn = 0; turn === 0 || !stopped.signal.aborted; turn += 1) {
      ends.push(await readStream(client, { marker: `${name}-${seat}-${turn}`, words, delayMs, onText }));
    }
  });
  const ended = Promise.all(seats);
  // A stream that fails before its first word is reported by `stop`.
  ended.catch((error) => begun.reject(error));
  const stop = async () => {
    stopped.abort();
    await ended;
    return ends;
  };
  return { begun: begun.promise, stop };
}

/** So many streams at once, of one turn each: `begun` and `ended` as `begun` and `stop` of `keepStreams`. */
export function openStreams(asked, options) {
  const { begun, stop } = keepStreams(asked, options);
  return { begun, ended: stop() };
}

/** Asks at a steady pace until it is stopped; it tries nothing again, and keeps whatever is no success. */
export class Probe {
  #stopped = new AbortController();
  #running;
  #open = new Set();
  #count = 0;
  failures = [];

  constructor({ url, apiKey }) {
    this.#running = this.#run(url, apiKey);
  }

  async #run(url, apiKey) {
    while (!this.#stopped.signal.aborted) {
      const asked = this.#ask(url, apiKey).catch((error) => this.failures.push(`${error.cause?.code ?? error.message}`));
      this.#open.add(asked);
      void asked.finally(() => this.#open.delete(asked));
      await wait(1000 / PROBES_PER_SECOND);
    }
  }

  async #ask(url, apiKey) {
    this.#count += 1;
    const number = this.#count;
    // With a key of its own, a turn may be asked for again wherever a gateway is killed under it.
    const headers = { 'X-API-Key': apiKey, Accept: 'application/json', 'Idempotency-Key': `probe-${randomUUID()}` };
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const body = JSON.stringify({ message: `[[say:probe ${number}]]`, sender: `probe-${number}` });
    const turn = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body, signal };
    const isTurn = number % TURN_EVERY === 0;
    const answer = isTurn ? await fetch(`${url}/api/cs`, turn) : await fetch(`${url}/openapi.json`, { headers, signal });
    const text = await answer.text();
    if (answer.status !== 200) this.failures.push(`${number} ${new Date().toISOString()} ${answer.status} ${text.slice(0, 200)}`);
    else if (isTurn && !text.includes(`probe ${number}`)) this.failures.push(`${number}: ${text.slice(0, 200)}`);
  }

  /** Resolves with the number of requests, after the last answer. */
  async stop() {
    this.#stopped.abort();
    await this.#running;
    await Promise.all(this.#open);
    return this.#count;
  }
}
