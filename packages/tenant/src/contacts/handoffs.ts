import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import {
  AppError,
  Handoff,
  HandoffAlert,
  HandoffEnd,
  HOUR_MS,
  limits,
  StoredHandoffCall,
  type Actor,
  type HandoffCall,
  type HandoffView,
} from '@concierge/contract';
import { assertNotLater, RecordFolder, unlessLater, type FolderSync } from '@concierge/files';
import { failpoint, KeyedMutex, type Log } from '@concierge/runtime';

const END_SUFFIX = '.resumed';

export interface HandoffsOptions {
  readonly tenantId: string;
  /** tenants/<id>/handoffs */
  readonly folder: string;
  readonly folders: FolderSync;
  /** Called when a handoff of this conversation has changed. */
  readonly onChanged?: ((sessionId: string) => void) | undefined;
  readonly log: Log;
  readonly now?: () => number;
}

export interface HandoffRequest {
  readonly reason: string;
  readonly by: Actor;
  /** After this the agent goes on by itself; without it, when the handoff is resumed. */
  readonly hours?: number | undefined;
  /** Whom to notify of what; without it, no notification is sent. */
  readonly call?: Omit<HandoffCall, 'version' | 'handoffId' | 'sessionId' | 'at'>;
}

/**
 * Conversations that a staff member has, or is asked to take. States: none → paused → resumed (on request) or expired
 * (its time is over) → paused again. The request is a file of the conversation's name, its end another one that names
 * the request: an end that comes late ends the handoff it was meant for, not the next one.
 */
export class Handoffs {
  readonly #handoffs: RecordFolder<typeof Handoff>;
  readonly #ends: RecordFolder<typeof HandoffEnd>;
  readonly #calls: RecordFolder<typeof StoredHandoffCall>;
  readonly #alerts: RecordFolder<typeof HandoffAlert>;
  readonly #writers = new KeyedMutex();
  readonly #now: () => number;

  constructor({ folder, folders, tenantId, onChanged, log, now = Date.now }: HandoffsOptions) {
    const place = { folder, folders, tenantId, log };
    this.#handoffs = new RecordFolder({ ...place, onChanged, schema: Handoff, names: /^[0-9a-f]{32}$/u });
    const onEnded = onChanged && ((name: string) => onChanged(name.slice(0, -END_SUFFIX.length)));
    this.#ends = new RecordFolder({ ...place, onChanged: onEnded, schema: HandoffEnd, names: /^[0-9a-f]{32}\.resumed$/u });
    this.#calls = new RecordFolder({
      ...place,
      folder: callsFolder(folder),
      store: folder,
      schema: StoredHandoffCall,
      names: /^h_[0-9a-f]{32}$/u,
    });
    this.#alerts = new RecordFolder({
      ...place,
      folder: join(folder, 'alerts'),
      store: folder,
      schema: HandoffAlert,
      names: /^h_[0-9a-f]{32}$/u,
    });
    this.#now = now;
  }

  /**
   * Must the agent stay silent in this conversation? Ask right before each send. A file that cannot be read means yes.
   */
  async isPaused(sessionId: string): Promise<boolean> {
    const read = await this.#handoffs.read(sessionId);
    if (read === undefined) return false;
    return read.status === 'broken' || (await this.#toHandoffView(read.value)).state === 'paused';
  }

  /** The last handoff of the conversation; undefined when there never was one. */
  async find(sessionId: string): Promise<HandoffView | undefined> {
    const handoff = await this.#handoffs.find(sessionId);
    return handoff === undefined ? undefined : this.#toHandoffView(handoff);
  }

  /** Conversations that wait for staff, the oldest first; those whose file cannot be read are paused, too. */
  async paused(): Promise<{ readonly handoffs: HandoffView[]; readonly broken: string[] }> {
    const handoffs: HandoffView[] = [];
    const broken: string[] = [];
    for (const sessionId of await this.#handoffs.names()) {
      const read = await this.#handoffs.read(sessionId);
      if (read?.status === 'broken') broken.push(sessionId);
      else if (read !== undefined) handoffs.push(await this.#toHandoffView(read.value));
    }
    const waiting = handoffs.filter(({ state }) => state === 'paused');
    return { handoffs: waiting.toSorted((a, b) => a.since.localeCompare(b.since)), broken };
  }

  /**
   * On disk when it returns. A conversation that is paused already stays as it is; `isNew` is false then.
   * @throws AppError invalid_request
   */
  async request(
    sessionId: string,
    { reason, by, hours, call }: HandoffRequest,
  ): Promise<{ readonly view: HandoffView; readonly isNew: boolean }> {
    if (hours !== undefined && !(hours > 0 && hours <= limits.handoffMaxHours))
      throw new AppError('invalid_request', `A handoff may last up to ${String(limits.handoffMaxHours)} hours.`);
    return this.#writers.run(sessionId, async () => {
      const before = await this.find(sessionId);
      if (before?.state === 'paused') return { view: before, isNew: false };
      const nowMs = this.#now();
      const handoff = Handoff.parse({
        version: 1,
        id: `h_${randomBytes(16).toString('hex')}`,
        sessionId,
        reason,
        requestedBy: by,
        since: new Date(nowMs).toISOString(),
        until: hours === undefined ? null : new Date(nowMs + hours * HOUR_MS).toISOString(),
      });
      // The notifications come first: else a crash after the next line would leave a contact waiting without any notice
      // to staff.
      if (call !== undefined) {
        const { channelAddress: chatApp, ...facts } = call;
        await this.#calls.put(handoff.id, { version: 1, handoffId: handoff.id, sessionId, at: handoff.since, ...facts, chatApp });
      }
      await this.#handoffs.put(sessionId, handoff);
      await failpoint('handoff.after-file');
      return { view: await this.#toHandoffView(handoff), isNew: true };
    });
  }

  /** The agent answers again. On disk when it returns. @throws LaterVersionError */
  async resume(sessionId: string, by: Actor): Promise<'resumed' | 'not_paused'> {
    return this.#writers.run(sessionId, async () => {
      const read = await this.#handoffs.read(sessionId);
      if (read === undefined) return 'not_paused';
      if (read.status === 'broken') {
        assertNotLater(read, sessionId);
        await this.#handoffs.remove(sessionId);
        return 'resumed';
      }
      if ((await this.#toHandoffView(read.value)).state !== 'paused') return 'not_paused';
      await this.#ends.put(endName(sessionId), { version: 1, handoffId: read.value.id, by, at: new Date(this.#now()).toISOString() });
      return 'resumed';
    });
  }

  /** Handoffs whose notifications are not all sent. */
  async pending(): Promise<HandoffCall[]> {
    const calls = await Promise.all((await this.#calls.names()).map(async (id) => unlessLater(this.#calls.find(id))));
    return calls.filter((call) => call !== undefined).map(({ chatApp, ...call }) => ({ ...call, channelAddress: chatApp }));
  }

  /** Marks all notifications of the handoff as sent. */
  async markNotified(handoffId: string): Promise<void> {
    await this.#calls.remove(handoffId);
  }

  /** Whether the owner was told that it is unanswered; a file that cannot be read says so, too. */
  async isAlerted(handoffId: string): Promise<boolean> {
    return (await this.#alerts.read(handoffId)) !== undefined;
  }

  async markAlerted({ id, sessionId }: Pick<HandoffView, 'id' | 'sessionId'>): Promise<void> {
    await this.#alerts.put(id, { version: 1, handoffId: id, sessionId, at: new Date(this.#now()).toISOString() });
  }

  /** Forgets of which handoffs the owner was told, but for those that still wait. */
  async keepAlerts(waiting: ReadonlySet<string>): Promise<void> {
    for (const id of await this.#alerts.names()) if (!waiting.has(id)) await this.#alerts.remove(id);
  }

  /** The conversation is gone, and with it who had it. */
  async forget(sessionId: string): Promise<void> {
    const handoff = await unlessLater(this.find(sessionId));
    if (handoff !== undefined) await this.#alerts.remove(handoff.id);
    await this.#handoffs.remove(sessionId);
    await this.#ends.remove(endName(sessionId));
    for (const call of await this.pending()) if (call.sessionId === sessionId) await this.#calls.remove(call.handoffId);
  }

  async sweep(): Promise<void> {
    await this.#calls.sweep();
    await this.#alerts.sweep();
    await this.#handoffs.sweep();
  }

  async #toHandoffView({ id, sessionId, reason, requestedBy, since, until }: Handoff): Promise<HandoffView> {
    const end = await this.#ends.find(endName(sessionId));
    const shown = { id, sessionId, reason, requestedBy, since, until };
    if (end?.handoffId === id) return { ...shown, state: 'resumed', resumedBy: end.by, resumedAt: end.at };
    const isOver = until !== null && Date.parse(until) <= this.#now();
    return { ...shown, state: isOver ? 'expired' : 'paused', resumedBy: null, resumedAt: null };
  }
}

export function callsFolder(folder: string): string {
  return join(folder, 'calls');
}

function endName(sessionId: string): string {
  return `${sessionId}${END_SUFFIX}`;
}
