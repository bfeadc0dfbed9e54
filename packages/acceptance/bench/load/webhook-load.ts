import { createHmac, randomBytes, randomInt } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { HttpConnection } from './http-connection.ts';

/** Signed deliveries of WhatsApp. Plain data: it goes to a process of its own. */
export interface WebhookSpec {
  readonly port: number;
  /** One for each tenant, used in turn. */
  readonly paths: readonly string[];
  readonly phoneNumberId: string;
  readonly appSecret: string;
  readonly connections: number;
  /** Contacts that write over one connection, in turn. */
  readonly peopleEach: number;
  /** Messages in each delivery. More than one: of all these contacts in turn; the next delivery has other contacts. */
  readonly messagesEach: number;
  /** 0: as many as there are in `total`. */
  readonly measureMs: number;
  /** Deliveries in all; undefined: as long as it measures. */
  readonly total: number | undefined;
  /**
   * Deliveries that fall due in a second, whatever becomes of those before; undefined: each when the one before it on
   * its connection is answered.
   */
  readonly perSecond: number | undefined;
  /** Contacts that no earlier load had. */
  readonly newcomers: boolean;
  readonly warmUpMs: number;
}

export interface WebhookResult {
  readonly acknowledged: number;
  readonly seconds: number;
  /** Ascending. */
  readonly latencyMs: readonly number[];
  readonly refused: number;
  readonly firstRefusal: string | null;
}

const acknowledged = 'HTTP/1.1 200 ';

/** Keeps every connection busy, and counts what is acknowledged while it measures. */
export class WebhookLoad {
  readonly #spec: WebhookSpec;
  readonly #run = randomBytes(4).toString('hex');
  readonly #prefix: string;
  readonly #latencyMs: number[] = [];
  #begun = 0;
  #refused = 0;
  #firstRefusal: string | null = null;
  #startedMs = 0;
  #isMeasuring = false;
  #isEnding = false;

  constructor(spec: WebhookSpec) {
    this.#spec = spec;
    this.#prefix = spec.newcomers ? `48${String(randomInt(100, 1000))}` : '49151';
  }

  async run(): Promise<WebhookResult> {
    const { connections, total, warmUpMs, measureMs } = this.#spec;
    this.#isMeasuring = total !== undefined;
    this.#startedMs = performance.now();
    const slots = Promise.all(Array.from({ length: connections }, async (_, slot) => this.#runSlot(slot)));
    if (total === undefined) {
      await wait(warmUpMs);
      [this.#isMeasuring, this.#startedMs] = [true, performance.now()];
      await wait(measureMs);
      this.#isMeasuring = false;
      this.#isEnding = true;
    }
    const endedMs = performance.now();
    await slots;
    const seconds = ((total === undefined ? endedMs : performance.now()) - this.#startedMs) / 1000;
    const latencyMs = this.#latencyMs.toSorted((one, other) => one - other);
    return { acknowledged: latencyMs.length, seconds, latencyMs, refused: this.#refused, firstRefusal: this.#firstRefusal };
  }

  async #runSlot(slot: number): Promise<void> {
    const connection = new HttpConnection(this.#spec.port, acknowledged);
    for (let sent = 0; !this.#isEnding && this.#begun < (this.#spec.total ?? Number.POSITIVE_INFINITY); sent += 1) {
      const dueMs = this.#dueMs(this.#begun);
      this.#begun += 1;
      // No timer where none is needed: the shortest takes a millisecond.
      if (dueMs > performance.now()) await wait(dueMs - performance.now());
      const { body, firstTextMs } = await connection.send(this.#delivery(slot, sent));
      if (firstTextMs === undefined) this.#refuse(body);
      else if (this.#isMeasuring) this.#latencyMs.push(performance.now() - dueMs);
    }
    connection.close();
  }

  /** Late ones count from when they were due: a slow service does not slow those down who write to it. */
  #dueMs(before: number): number {
    const { perSecond } = this.#spec;
    return perSecond === undefined ? performance.now() : this.#startedMs + (before * 1000) / perSecond;
  }

  #refuse(answer: string): void {
    this.#refused += 1;
    this.#firstRefusal ??= answer.slice(0, 1000);
  }

  #delivery(slot: number, sent: number): string {
    const { paths, phoneNumberId, appSecret, messagesEach } = this.#spec;
    const senders = Array.from({ length: messagesEach }, (_, index) => this.#nameSender(slot, sent, index));
    const text = { body: 'What is the state of my order? It should have been here by now, I think.' };
    const value = {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: '15550783881', phone_number_id: phoneNumberId },
      contacts: [...new Set(senders)].map((person) => ({ profile: { name: `Person ${person}` }, wa_id: person, user_id: `DE.${person}` })),
      messages: senders.map((person, index) => {
        const id = `wamid.${this.#run}-${String(slot)}-${String(sent)}-${String(index)}`;
        return { from: person, from_user_id: `DE.${person}`, id, timestamp: '1760000000', type: 'text', text };
      }),
    };
    const body = JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: '1', changes: [{ value, field: 'messages' }] }] });
    const signature = createHmac('sha256', appSecret).update(body).digest('hex');
    const path = paths[slot % paths.length] ?? '/';
    const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nX-Hub-Signature-256: sha256=${signature}\r\n`;
    return `${head}Content-Length: ${String(body.length)}\r\n\r\n${body}`;
  }

  #nameSender(slot: number, sent: number, index: number): string {
    const { peopleEach, messagesEach } = this.#spec;
    const number = messagesEach === 1 ? sent % peopleEach : sent * peopleEach + (index % peopleEach);
    return `${this.#prefix}${String(slot).padStart(4, '0')}${String(number).padStart(3, '0')}`;
  }
}
