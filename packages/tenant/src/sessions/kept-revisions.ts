import { randomBytes } from 'node:crypto';
import { rename, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ignoreMissing, isSystemError, linkNew, namesIn, removeFolderIn, writeTemporary } from '@concierge/files';
import { isHashedName } from './session-ids.ts';
import { SessionRevisions } from './session-revisions.ts';

const removedPrefix = '.removed-';

/** What is done with revisions beside publishing them: put back, set aside, adopted, taken out. */
export class KeptRevisions extends SessionRevisions {
  /**
   * Puts a revision of the log back where a power cut took it, or its content, before it was on disk. One that was
   * removed since, by a prune or a retraction, stays removed. All that there are by then are on disk when it returns.
   */
  async restore(id: string, revision: number, text: string): Promise<void> {
    const numbers = (await this.list(id))?.numbers ?? [];
    const isTorn = numbers.includes(revision) && (await this.read(id, revision)) !== text;
    if (isTorn || revision > (numbers.at(-1) ?? 0)) {
      await this.makeFolder(id);
      await rename(await writeTemporary(this.toRevisionsFolder(id), text), this.toRevisionPath(id, revision));
    }
    await this.sync(id);
    await this.repairView(id);
  }

  /** Out of the way with a file that a damaged disk has made unreadable; the revision before it is the newest then. */
  async setAside(id: string, revision: number): Promise<void> {
    await ignoreMissing(rename(this.toRevisionPath(id, revision), `${this.toRevisionPath(id, revision)}.broken`));
  }

  /** Makes a view that has no revisions, such as one from a backup, the session's first one here. */
  async adopt(id: string, revision: number): Promise<void> {
    await this.makeFolder(id);
    await linkNew(this.viewPath(id), this.toRevisionPath(id, revision));
    await Promise.all([this.folders.sync(this.toRevisionsFolder(id)), this.folders.sync(this.allRevisions())]);
  }

  /** All revisions go in one step; false when there are none (any more). */
  async remove(id: string): Promise<boolean> {
    const away = join(this.allRevisions(), `${removedPrefix}${id}-${randomBytes(4).toString('hex')}`);
    try {
      await rename(this.toRevisionsFolder(id), away);
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return false;
      throw error;
    }
    await this.folders.sync(this.allRevisions());
    await removeFolderIn(this.allRevisions(), basename(away));
    return true;
  }

  /** Ids that have revisions. */
  async ids(): Promise<string[]> {
    return (await this.#names()).filter(isHashedName);
  }

  /** Finishes removals that were cut off. */
  async sweep(): Promise<void> {
    for (const name of await this.#names()) {
      if (name.startsWith(removedPrefix)) await removeFolderIn(this.allRevisions(), name);
    }
  }

  /** Keeps only the newest of a session's revisions: the others contain what was taken out of it. */
  async dropEarlier(id: string): Promise<void> {
    const old = (await this.list(id))?.numbers.slice(0, -1) ?? [];
    await Promise.all(old.map((number) => ignoreMissing(unlink(this.toRevisionPath(id, number)))));
    await this.folders.sync(this.toRevisionsFolder(id));
  }

  async #names(): Promise<string[]> {
    return namesIn(this.allRevisions());
  }
}
