import { randomBytes } from 'node:crypto';
import type { LoadSpec } from './load-spec.ts';

/** Turns of one conversation before a driver's slot begins the next: about what a support conversation has. */
const TURNS_PER_SESSION = 8;
const message = 'What is the state of my order? It should have been here by now, I think.';

/** The requests of one slot, one after another. */
export class TurnRequests {
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
