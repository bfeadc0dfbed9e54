import { join } from 'node:path';
import { limits, SessionLabel, type SessionLabelBody } from '@concierge/contract';
import { RecordFolder, unlessLater, type FolderSync } from '@concierge/files';
import { KeyedMutex, type Log } from '@concierge/runtime';

export const labelsFolder = '.labels';

export interface SessionLabelsOptions {
  readonly tenantId: string;
  /** tenants/<id>/sessions */
  readonly folder: string;
  readonly folders: FolderSync;
  /** Called when the label of this conversation has changed. */
  readonly onChanged?: ((sessionId: string) => void) | undefined;
  readonly log: Log;
}

/**
 * What the owner has set about conversations: another name, and whether it is pinned. Apart from the sessions' own
 * files, which a running turn is about to replace.
 */
export class SessionLabels {
  readonly #records: RecordFolder<typeof SessionLabel>;
  readonly #writers = new KeyedMutex();

  constructor({ folder, ...place }: SessionLabelsOptions) {
    const labels = { folder: join(folder, labelsFolder), store: folder };
    this.#records = new RecordFolder({ ...place, ...labels, schema: SessionLabel, names: /^[0-9a-f]{32}$/u });
  }

  async find(sessionId: string): Promise<SessionLabel | undefined> {
    return unlessLater(this.#records.find(sessionId));
  }

  /** On disk when it returns. */
  async change(sessionId: string, { title, pinned }: SessionLabelBody): Promise<SessionLabel> {
    return this.#writers.run(sessionId, async () => {
      const before = await this.#records.find(sessionId);
      const label: SessionLabel = {
        version: 1,
        title: title === undefined ? (before?.title ?? null) : title,
        pinned: pinned ?? before?.pinned ?? false,
        updatedAt: new Date().toISOString(),
      };
      await this.#records.put(sessionId, label);
      return label;
    });
  }

  /** Of all conversations that have one, up to a bound. */
  async all(): Promise<ReadonlyMap<string, SessionLabel>> {
    const labels = new Map<string, SessionLabel>();
    for (const name of (await this.#records.names()).slice(0, limits.sessionLabelsMax)) {
      const label = await this.find(name);
      if (label !== undefined) labels.set(name, label);
    }
    return labels;
  }

  async sweep(): Promise<void> {
    await this.#records.sweep();
  }
}
