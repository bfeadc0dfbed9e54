import { createHash } from 'node:crypto';
import { AppError, limits, OutboundId, OutboundMessage } from '@concierge/contract';
import { failpoint, type Log } from '@concierge/runtime';
import type { FolderSync } from './folder-sync.ts';
import { RecordFolder } from './record-folder.ts';

export interface OutboxOptions {
  readonly accountId: string;
  /** tenants/<id>/outbox */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly log: Log;
  readonly now?: () => number;
}

export type NewOutbound = Omit<OutboundMessage, 'version' | 'id' | 'acceptedAt' | 'expiresAt'>;

/**
 * What agents have said beside their replies: a file each, written before the tool that says it answers. The name follows from turn and call, so that a
 * call which is made again after a crash finds its message here; for that it stays until its time is over, whatever becomes of it.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #records: RecordFolder<typeof OutboundMessage>;

  constructor(options: OutboxOptions) {
    const { folder, folders, accountId, log } = options;
    this.#options = options;
    this.#records = new RecordFolder({ folder, folders, accountId, log, schema: OutboundMessage, names: /^m_[0-9a-f]{32}$/u });
  }

  /** On disk when it returns. `isNew` is false when this call has said it before: the first one counts. @throws AppError too_many_waiting */
  async accept(outbound: NewOutbound): Promise<{ readonly message: OutboundMessage; readonly isNew: boolean }> {
    const id = this.idOf(outbound);
    const known = await this.find(id);
    if (known !== undefined) return { message: known, isNew: false };
    if (await this.#isFull())
      throw new AppError('too_many_waiting', `${String(limits.outboxMaxWaiting)} messages wait to be sent already; no more are taken.`);
    const nowMs = this.#nowMs();
    const message = OutboundMessage.parse({
      version: 1,
      id,
      ...outbound,
      acceptedAt: new Date(nowMs).toISOString(),
      expiresAt: new Date(nowMs + limits.outboxTtlSeconds * 1000).toISOString(),
    });
    const isNew = await this.#records.create(id, message);
    await failpoint('outbox.after-file');
    return { message: (await this.find(id)) ?? message, isNew };
  }

  idOf({ turnId, callId }: Pick<OutboundMessage, 'turnId' | 'callId'>): string {
    const digest = createHash('sha256')
      .update(JSON.stringify(['outbound', this.#options.accountId, turnId, callId]))
      .digest('hex');
    return OutboundId.parse(`m_${digest.slice(0, 32)}`);
  }

  async find(id: string): Promise<OutboundMessage | undefined> {
    return this.#records.find(id);
  }

  /** What is still to be sent, in order of acceptance. */
  async waiting(): Promise<OutboundMessage[]> {
    const found = await Promise.all((await this.#records.names()).map(async (id) => this.find(id)));
    return found
      .filter((message) => message !== undefined)
      .filter((message) => !this.#isExpired(message))
      .toSorted((a, b) => a.acceptedAt.localeCompare(b.acceptedAt) || a.id.localeCompare(b.id));
  }

  /** Clears away what is not to be sent any more, and what writers that died in the middle left. */
  async sweep(): Promise<void> {
    await this.#records.sweep();
    for (const id of await this.#records.names()) {
      const message = await this.find(id);
      if (message === undefined || !this.#isExpired(message)) continue;
      this.#options.log.warn(
        { accountId: this.#options.accountId, messageId: id, turnId: message.turnId },
        'a message was never sent: its time is over',
      );
      await this.#records.remove(id);
    }
  }

  async #isFull(): Promise<boolean> {
    if ((await this.#records.names()).length < limits.outboxMaxWaiting) return false;
    await this.sweep();
    return (await this.#records.names()).length >= limits.outboxMaxWaiting;
  }

  #isExpired({ expiresAt }: OutboundMessage): boolean {
    return Date.parse(expiresAt) <= this.#nowMs();
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }
}
