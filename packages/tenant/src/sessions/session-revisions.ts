import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  ignoreMissing,
  isSystemError,
  keepFolders,
  lstatIfThere,
  makeStoreFolder,
  quickReaddir,
  runFileSteps,
  removeOldTemporaries,
  syncFile,
  temporaryName,
  temporaryPrefix,
  type FolderSync,
} from '@concierge/files';
import { background, failpoint, type Log } from '@concierge/runtime';
import { RevisionConflict, type PublicationLog } from './publications.ts';

const revisionDigits = 10;
const revisionsKept = 3;
/**
 * A publication that took longer than this may have been frozen after its check while others published.
 */
const frozenAfterMs = 250;
const birthPrefix = '.birth-';

export interface Revisions {
  /** Ascending. */
  readonly numbers: readonly number[];
  /** Distinguishes this session from an earlier one with the same id; '' where nothing does. */
  readonly birth: string;
  readonly temporaries: readonly string[];
}

export interface SessionRevisionsOptions {
  /** tenants/<id>/sessions */
  readonly folder: string;
  /** Without it every publication waits for its files. */
  readonly wal: PublicationLog | undefined;
  readonly folders: FolderSync;
  readonly log: Log;
}

/**
 * The files of sessions: `.revisions/<id>/<revision>.json`, of which the highest number is the session, and
 * `<id>.json`, another name of that file for editors and backups.
 *
 * Publishing is a compare-and-set. The new file is linked to the name of its revision, which fails when another writer
 * has taken it; then the folder is listed, which shows whether this one is really the next: a writer that was frozen
 * for so long that its number has been taken and cleared away again finds higher ones and withdraws.
 */
export class SessionRevisions {
  readonly #folder: string;
  readonly #wal: PublicationLog | undefined;
  protected readonly folders: FolderSync;
  readonly #log: Log;

  constructor({ folder, wal, folders, log }: SessionRevisionsOptions) {
    this.#folder = folder;
    this.#wal = wal;
    this.folders = folders;
    this.#log = log;
  }

  viewPath(id: string): string {
    return join(this.#folder, `${id}.json`);
  }

  /** One directory read. undefined when there is no such folder; `isExpected`: it was there a moment ago. */
  async list(id: string, isExpected = false): Promise<Revisions | undefined> {
    let names: string[];
    // Most messages of strangers are their first; an error costs ten times this look.
    if (!isExpected && (await lstatIfThere(this.toRevisionsFolder(id))) === undefined) return undefined;
    try {
      names = await quickReaddir(this.toRevisionsFolder(id));
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return undefined;
      throw error;
    }
    return readNames(names);
  }

  /** undefined when it has been cleared away meanwhile. */
  async read(id: string, revision: number): Promise<string | undefined> {
    try {
      return await readFile(this.toRevisionPath(id, revision), 'utf8');
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  /** On disk when it returns, in its files or in the log; the birth of the folder it is in. @throws RevisionConflict */
  async publish(id: string, revision: number, text: string): Promise<string> {
    const wal = this.#wal?.takes(text.length) === true ? this.#wal : undefined;
    const folder = this.toRevisionsFolder(id);
    // A session's folder is made with its first revision only: a later one without a folder belongs to a session that
    // was removed.
    if (revision === 1) await this.makeFolder(id);
    const temporary = join(folder, temporaryName());
    const startedMs = performance.now();
    try {
      const names = await runFileSteps([
        { do: 'create', path: temporary, content: text, isSynced: wal === undefined, passes: 'session.after-temp' },
        { do: 'link', from: temporary, to: this.toRevisionPath(id, revision), passes: 'session.after-link' },
        { do: 'list', path: folder },
      ]);
      const listed = await this.#assertNext(id, revision, readNames(names));
      await failpoint('session.after-check');
      await this.#keep(id, text, wal);
      await failpoint('session.after-log');
      const old = listed.numbers.filter((number) => number <= revision - revisionsKept);
      // After the log: a view that is behind means that its revision may not be on disk yet. The view itself is not
      // waited for.
      await runFileSteps([
        { do: 'rename', from: temporary, to: this.viewPath(id), passes: 'session.after-publish' },
        ...old.map((number) => ({ do: 'remove', path: this.toRevisionPath(id, number) }) as const),
      ]);
      // One of them is our own; only where there are more has another writer left something behind.
      if (listed.temporaries.length > 1) background(removeOldTemporaries(folder, listed.temporaries), this.#log);
      if (performance.now() - startedMs > frozenAfterMs) await this.repairView(id);
      return listed.birth;
    } catch (error) {
      await ignoreMissing(unlink(temporary)).catch(() => undefined);
      // Another writer has the number, or the folder went away under our hands: the session was removed.
      if (isSystemError(error, 'ENOENT', 'EEXIST')) throw new RevisionConflict(id, revision);
      throw error;
    }
  }

  /**
   * Makes `<id>.json` the newest revision, and sees to it that this one is on disk, if the publisher did not come to
   * it.
   */
  async repairView(id: string): Promise<void> {
    // Each pass that changes something looks again: a publication may have come between.
    for (let pass = 0; pass < 5; pass += 1) {
      const newest = (await this.list(id))?.numbers.at(-1);
      if (newest === undefined || (await this.isViewed(id, newest))) return;
      await this.sync(id);
      const temporary = join(this.#folder, temporaryName());
      try {
        await link(this.toRevisionPath(id, newest), temporary);
        await rename(temporary, this.viewPath(id));
      } catch (error) {
        // Pruned meanwhile, so there is a newer one.
        if (!isSystemError(error, 'ENOENT')) throw error;
      } finally {
        // When both names are the same file already, rename(2) does nothing and leaves the temporary name.
        await ignoreMissing(unlink(temporary));
      }
    }
  }

  /** The revisions that there are by then are on disk when it returns, in their places. */
  async sync(id: string): Promise<void> {
    for (;;) {
      const [newest, ...earlier] = (await this.list(id))?.numbers.toReversed() ?? [];
      if (newest === undefined) return;
      try {
        await syncFile(this.toRevisionPath(id, newest));
        // Those before it are what is left should its file be damaged one day.
        await Promise.all(earlier.map(async (number) => ignoreMissing(syncFile(this.toRevisionPath(id, number)))));
        await Promise.all([this.folders.sync(this.toRevisionsFolder(id)), this.folders.sync(this.allRevisions())]);
        return;
      } catch (error) {
        // There is a newer one, or the session was removed.
        if (!isSystemError(error, 'ENOENT')) throw error;
      }
    }
  }

  protected async makeFolder(id: string): Promise<void> {
    const folder = this.toRevisionsFolder(id);
    try {
      await mkdir(folder).catch(async (error: unknown) => {
        // A backup without its empty folders: only then is the one above looked for.
        if (!isSystemError(error, 'ENOENT')) throw error;
        await keepFolders(await makeStoreFolder(this.allRevisions(), { store: this.#folder }), this.folders);
        await mkdir(folder);
      });
    } catch (error) {
      if (isSystemError(error, 'EEXIST')) return;
      throw error;
    }
    await writeFile(join(folder, `${birthPrefix}${randomBytes(8).toString('hex')}`), '', { flag: 'wx' });
  }

  /** Is what was just linked the next revision? If not it is withdrawn. @throws RevisionConflict */
  async #assertNext(id: string, revision: number, listed: Revisions): Promise<Revisions> {
    const follows = revision === 1 || listed.numbers.includes(revision - 1);
    if (listed.numbers.at(-1) === revision && follows) return listed;
    await ignoreMissing(unlink(this.toRevisionPath(id, revision)));
    throw new RevisionConflict(id, revision);
  }

  async #keep(sessionId: string, text: string, wal: PublicationLog | undefined): Promise<void> {
    const sync = async (): Promise<void> => this.sync(sessionId);
    if ((await wal?.record({ sessionId, text, sync })) !== true) await sync();
  }

  /** Is `<id>.json` this revision? Then its publication was finished. */
  async isViewed(id: string, revision: number): Promise<boolean> {
    const [view, newest] = await Promise.all([
      stat(this.viewPath(id)).catch(() => undefined),
      stat(this.toRevisionPath(id, revision)).catch(() => undefined),
    ]);
    return view !== undefined && newest !== undefined && view.ino === newest.ino && view.dev === newest.dev;
  }

  protected allRevisions(): string {
    return join(this.#folder, '.revisions');
  }

  protected toRevisionsFolder(id: string): string {
    return join(this.#folder, '.revisions', id);
  }

  protected toRevisionPath(id: string, revision: number): string {
    return join(this.#folder, '.revisions', id, `${String(revision).padStart(revisionDigits, '0')}.json`);
  }
}

function readNames(names: readonly string[]): Revisions {
  const numbers: number[] = [];
  const temporaries: string[] = [];
  let birth = '';
  for (const name of names) {
    if (/^\d{10}\.json$/u.test(name)) numbers.push(Number(name.slice(0, revisionDigits)));
    else if (name.startsWith(temporaryPrefix)) temporaries.push(name);
    else if (name.startsWith(birthPrefix)) birth = name;
  }
  return { numbers: numbers.toSorted((a, b) => a - b), birth, temporaries };
}
