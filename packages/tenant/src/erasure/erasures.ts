import { join } from 'node:path';
import { AppError, Erasure, StoredErasureReport, type ErasureReport, type ErasureTraces } from '@concierge/contract';
import { RecordFolder, type FolderSync } from '@concierge/files';
import type { Log } from '@concierge/runtime';

const names = /^[0-9a-f]{32}$/u;

export interface ErasuresOptions {
  readonly tenantId: string;
  /** tenants/<id>/settings: commands of the tenant do not see it. */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly log: Log;
}

/** Where the erasures of a tenant lie that are under way. `folder`: tenants/<id>/settings */
export function erasuresFolder(folder: string): string {
  return join(folder, 'erasures');
}

/** Erasures of contacts: one that runs knows the contact, and what is left of it is a report that does not. */
export class Erasures {
  readonly #running: RecordFolder<typeof Erasure>;
  readonly #done: RecordFolder<typeof StoredErasureReport>;

  constructor({ folder, ...options }: ErasuresOptions) {
    const running = erasuresFolder(folder);
    const place = { ...options, store: folder, names };
    this.#running = new RecordFolder({ ...place, folder: running, schema: Erasure });
    this.#done = new RecordFolder({ ...place, folder: join(running, 'done'), schema: StoredErasureReport });
  }

  /** On disk when it returns. One that runs goes on as it is. */
  async begin(id: string, traces: ErasureTraces): Promise<void> {
    const erased = { sessions: 0, turns: 0, notes: 0, entries: 0, uploads: 0, deliveries: 0, events: 0, streams: 0 };
    const begun = { version: 1, id, state: 'running', requestedAt: new Date().toISOString(), finishedAt: null } as const;
    await this.#running.create(id, { ...begun, waitsFor: null, erased, lookAt: [], hasMore: false, traces, logs: null });
  }

  /** Ids of those that run. */
  async running(): Promise<string[]> {
    return this.#running.names();
  }

  /** One that runs. */
  async find(id: string): Promise<Erasure | undefined> {
    return this.#running.find(id);
  }

  async put(erasure: Erasure): Promise<void> {
    await this.#running.put(erasure.id, erasure);
  }

  /** The report stays, and what led to the contact goes. */
  async finish({ traces: _traces, logs: _logs, ...report }: Erasure): Promise<void> {
    const finishedAt = new Date().toISOString();
    await this.#done.put(report.id, { ...report, state: 'done', waitsFor: null, finishedAt });
    await this.#running.remove(report.id);
  }

  /** @throws AppError not_found */
  async report(id: string): Promise<ErasureReport> {
    const running = await this.#running.find(id);
    const found = running ?? (await this.#done.find(id));
    if (found === undefined) throw new AppError('not_found', 'There is no such erasure.');
    const { state, requestedAt, finishedAt, waitsFor, erased, lookAt, hasMore } = found;
    return { id, state, requestedAt, finishedAt, waitsFor, erased, lookAt, hasMore };
  }

  async sweep(): Promise<void> {
    await this.#running.sweep();
    await this.#done.sweep();
  }
}
