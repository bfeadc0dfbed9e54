import { createHash, randomBytes } from 'node:crypto';
import type { Session } from '@concierge/contract';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import { eventually, type ScriptedModel, type System } from '@concierge/testing';
import type { Turns } from '@concierge/turn';
import { contactWrites, TestSystem, type Tenant } from './test-system.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Record<string, unknown>;
}

/** The whole system with a contact on a channel: their messages are accepted as the webhook accepts them. */
export class TestHandoffs {
  readonly system: System;
  readonly model: ScriptedModel;
  readonly #whole: TestSystem;
  readonly #turns: Turns;
  #tenant: Tenant | undefined;

  private constructor(whole: TestSystem, turns: Turns) {
    ({ system: this.system, model: this.model } = whole);
    this.#whole = whole;
    this.#turns = turns;
  }

  static async start(stack: AsyncDisposableStack): Promise<TestHandoffs> {
    const whole = stack.use(await TestSystem.start());
    return new TestHandoffs(whole, await whole.openTurns());
  }

  /** A new tenant, whose owner is notified on Telegram. */
  async newTenant(): Promise<void> {
    this.#tenant = await this.#whole.tenant();
    await this.scope.updateSettings({
      handoff: { notify: { channel: 'telegram', to: '9001' }, notice: 'A colleague will answer.' },
    });
  }

  get scope(): TenantScope {
    if (this.#tenant === undefined) throw new Error('no tenant yet');
    return this.#tenant.scope;
  }

  toSessionId(sender: string): string {
    return deriveSessionId('cs', 'channel_c', sender);
  }

  /** A contact writes on Telegram. @returns the turn's id */
  async write(sender: string, text: string): Promise<string> {
    const messageRef = randomBytes(6).toString('hex');
    const input = contactWrites(sender, text, {
      dedupeId: `channel:channel_c:1:${messageRef}`,
      requestHash: createHash('sha256').update(messageRef).digest('hex'),
      channelMessage: { address: { to: sender, thread: null }, isGroup: false, messageRef, media: [], replyTo: null },
    });
    return (await this.#turns.accept(this.scope, input)).turnId;
  }

  /** The session once it holds the turn, and what follows from the turn is done: its inbox entry goes last. */
  async ended(sender: string, turnId: string): Promise<Session> {
    return await eventually(
      async () => {
        const session = await this.scope.sessions.load(this.toSessionId(sender));
        const isThere = session?.turns.some(({ id }) => id === turnId) === true;
        return isThere && (await this.scope.inbox.read(turnId)) === undefined ? session : undefined;
      },
      { everyMs: 50 },
    );
  }

  async say(sender: string, text: string): Promise<Session> {
    return await this.ended(sender, await this.write(sender, text));
  }

  async ask(
    key: 'admin' | 'cs' | 'read',
    path: string,
    init: { readonly method?: string; readonly body?: unknown; readonly key?: string } = {},
  ): Promise<Answer> {
    const headers = new Headers({ 'x-api-key': this.#tenant?.keys[key] ?? '', 'content-type': 'application/json' });
    if (init.key !== undefined) headers.set('idempotency-key', init.key);
    const { method = init.body === undefined ? 'GET' : 'POST' } = init;
    const response = await fetch(`${this.system.url}${path}`, {
      method,
      headers,
      ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
    });
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- tests look at what they find in it
    return { status: response.status, headers: response.headers, json: (await response.json()) as Record<string, unknown> };
  }

  /** Replaces the running worker by one that dies at the named fail point. */
  async breakableWorker(failpoint: string): Promise<void> {
    const [worker] = this.system.workers;
    await worker?.kill();
    worker?.start({ FAILPOINT: failpoint });
  }

  /** Waits until the worker has died of its fail point, and starts it again. */
  async recoverWorker(): Promise<void> {
    const [worker] = this.system.workers;
    await eventually(() => worker?.alive === false, { everyMs: 50 });
    worker?.start();
  }
}
