import { randomBytes } from 'node:crypto';
import { ContactUnindexed } from '@concierge/contract';
import { RecordFolder, unlessLater, type RecordFolderOptions } from '@concierge/files';

/** In `contacts/`, beside the folders of contacts, which are named by hashes. */
export const unindexedFolder = '.unindexed';

/** A writer of a name lives no longer between its mark and the row. */
const WRITER_LIVES_MS = 60_000;

export interface UnindexedMark {
  readonly mark: string;
  /** The contact's. */
  readonly folder: string;
  /** Its writer is dead by now, or has given up. */
  readonly isOld: boolean;
}

/**
 * Contacts whose files may say something else than the index: a mark is on disk before the file is written, and goes
 * when the row is. What a killed process leaves is a mark, and readers of the index write the rows of those that they
 * find. Each writer has a mark of its own: none takes away what another one counts on.
 */
export class UnindexedContacts {
  readonly #marks: RecordFolder<typeof ContactUnindexed>;

  constructor(place: Omit<RecordFolderOptions<typeof ContactUnindexed>, 'schema' | 'names'>) {
    this.#marks = new RecordFolder({ ...place, schema: ContactUnindexed, names: /^[0-9a-f]{32}-[0-9a-f]{16}$/u });
  }

  /** On disk when it returns; its name, for `remove`. */
  async add(folder: string): Promise<string> {
    const mark = `${folder}-${randomBytes(8).toString('hex')}`;
    await this.#marks.create(mark, { version: 1, folder, since: new Date().toISOString() });
    return mark;
  }

  async remove(mark: string): Promise<void> {
    await this.#marks.remove(mark);
  }

  /** One directory read where there are none, as nearly always. */
  async list(): Promise<UnindexedMark[]> {
    const marks: UnindexedMark[] = [];
    for (const mark of await this.#marks.names()) {
      const found = await unlessLater(this.#marks.find(mark));
      if (found !== undefined) marks.push({ mark, folder: found.folder, isOld: Date.now() - Date.parse(found.since) > WRITER_LIVES_MS });
    }
    return marks;
  }

  async sweep(): Promise<void> {
    await this.#marks.sweep();
  }
}
