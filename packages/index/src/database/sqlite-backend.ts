import { constants } from 'node:fs';
import { access, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { AppError } from '@concierge/contract';
import { countIndexError, isUnavailable, KeyedMutex, SqliteLock, sqliteTrouble, type Log } from '@concierge/runtime';
import { LRUCache } from 'lru-cache';
import { sql, type Kysely } from 'kysely';
import type { IndexBackend, OwnConnection, Work } from './backend.ts';
import { CompiledQueries } from './compiled-queries.ts';
import { readMeta } from './meta.ts';
import { SqliteFile, fileIdentity, openIndexFile, prepareIndexFile, quarantine } from './sqlite-file.ts';
import type { IndexTables } from './tables.ts';

export interface SqliteBackendOptions {
  /** Holds one folder per tenant. */
  readonly folder: string;
  readonly bootId: string;
  readonly log: Log;
  /** Tenants whose file is kept open. */
  readonly openMax?: number;
  /** False: sqlite-vec is not used, as where it cannot be loaded. True unless given. */
  readonly vectorExtension?: boolean;
}

/** Three file descriptors each; opening one again takes about a millisecond. */
const OPEN_MAX = 200;
/**
 * How long a query is tried again while another process writes; a rebuild of a very large tenant holds the lock for
 * seconds.
 */
const BUSY_WAIT_MS = 30_000;
const FOLDER_TRIES = 5;
const BUSY_TRY_EVERY_MS = 10;
/** A file that is lost or corrupt again right after it was made anew is the disk's trouble, not the file's. */
const REPAIRS_MAX = 2;

/**
 * One `data.db` per tenant, opened when it is used and closed when others were used since: an idle tenant costs
 * nothing.
 */
export class SqliteBackend implements IndexBackend {
  readonly dialect = 'sqlite';
  readonly queries = new CompiledQueries();
  readonly log: Log;
  readonly #options: SqliteBackendOptions;
  readonly #lock: SqliteLock;
  readonly #open: LRUCache<string, SqliteFile>;
  readonly #writers = new KeyedMutex();
  readonly #opening = new Map<string, Promise<SqliteFile>>();

  constructor(options: SqliteBackendOptions) {
    this.#options = options;
    this.log = options.log;
    this.#lock = new SqliteLock(join(options.folder, '.lock.db'));
    this.#open = new LRUCache({ max: options.openMax ?? OPEN_MAX, dispose: (file: SqliteFile) => file.retire() });
  }

  async read<Result>(tenantId: string, work: Work<Result>): Promise<Result> {
    return this.#use(tenantId, async (file) => work(file.db));
  }

  /** The file is asked while it is in use: it may be deleted, and another one made, between two uses. */
  async readBuilt<Result>(tenantId: string, work: Work<Result>): Promise<{ readonly result: Result } | undefined> {
    return this.#use(tenantId, async (file) => {
      file.built ||= (await readMeta(file.db, tenantId, 'built')) !== undefined;
      return file.built ? { result: await work(file.db) } : undefined;
    });
  }

  async readVectors<Result>(tenantId: string, work: (db: Kysely<IndexTables>, canCompare: boolean) => Promise<Result>): Promise<Result> {
    const isWanted = this.#options.vectorExtension !== false;
    return this.#use(tenantId, async (file) => work(file.db, isWanted && file.loadVectors()));
  }

  /**
   * The writers of this process wait for each other here: in SQLite's own queue a waiting one stops the event loop, and
   * with it the writer that it waits for.
   */
  async write<Result>(tenantId: string, work: Work<Result>): Promise<Result> {
    return this.#writers.run(tenantId, async () => this.#use(tenantId, async (file) => file.db.transaction().execute(work)));
  }

  async writeOne<Result>(tenantId: string, work: Work<Result>): Promise<Result> {
    return this.#writers.run(tenantId, async () => this.#use(tenantId, async (file) => work(file.db)));
  }

  /** SQLite has one writer at a time anyway. */
  async writeAlone<Result>(tenantId: string, work: Work<Result>): Promise<Result> {
    return this.write(tenantId, work);
  }

  async withOwnConnection<Result>(tenantId: string, work: (own: OwnConnection) => Promise<Result>): Promise<Result> {
    return this.#use(tenantId, async ({ path }) => {
      const file = new SqliteFile(path, { create: false });
      try {
        const transact = async <Changed>(change: Work<Changed>): Promise<Changed> =>
          this.#writers.run(tenantId, async () => whileBusy(async () => file.db.transaction().execute(change)));
        const result = await work({ db: file.db, alone: transact, settled: transact });
        file.truncateLog();
        return result;
      } finally {
        file.retire();
      }
    });
  }

  /** Under the lock of writers: a file that is rewritten takes no other write meanwhile. */
  async scrub(tenantId: string): Promise<void> {
    await this.writeAlone(tenantId, async (db) => {
      // A search table without contents keeps deleted words until its segments are merged.
      await sql`insert into passage_terms(passage_terms) values ('delete-all')`.execute(db);
      await sql`insert into passage_terms(rowid, terms) select id, terms from passages`.execute(db);
    });
    await this.#use(tenantId, async ({ path }) => {
      const file = new SqliteFile(path, { create: false });
      try {
        await this.#writers.run(tenantId, async () => whileBusy(async () => Promise.resolve(file.rewrite())));
      } finally {
        file.retire();
      }
    });
    // Kept beside the new one when it was found broken.
    await rm(`${this.#toPath(tenantId)}.corrupt`, { force: true });
  }

  isThere(tenantId: string): boolean {
    return fileIdentity(this.#toPath(tenantId)) !== undefined;
  }

  async drop(tenantId: string): Promise<void> {
    await this.#locked(async () => {
      this.#open.delete(tenantId);
      await rm(join(this.#options.folder, tenantId), { recursive: true, force: true });
    });
  }

  async check(): Promise<void> {
    await mkdir(this.#options.folder, { recursive: true, mode: 0o700 });
    await access(this.#options.folder, constants.W_OK);
  }

  async readConnectionLimits(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#opening.values());
    this.#open.clear();
    // Retired files close in the next turn of the event loop.
    await nextTurn();
  }

  async #use<Result>(tenantId: string, work: (file: SqliteFile) => Promise<Result>): Promise<Result> {
    for (let repairs = 0; ; repairs += 1) {
      let file: SqliteFile | undefined;
      try {
        return await whileBusy(async () => {
          file = await this.#acquire(tenantId);
          return file.use(work);
        });
      } catch (error) {
        const trouble = sqliteTrouble(error);
        if (trouble !== undefined || isUnavailable(error)) countIndexError();
        if (trouble === undefined || repairs >= REPAIRS_MAX) throw error;
        this.#open.delete(tenantId);
        if (trouble === 'corrupt' && file !== undefined) await this.#quarantine(tenantId, file);
      }
    }
  }

  async #quarantine(tenantId: string, file: SqliteFile): Promise<void> {
    await this.#locked(async () => {
      quarantine(file, { tenantId, log: this.#options.log });
      return Promise.resolve();
    });
  }

  async #locked<Result>(work: () => Promise<Result>): Promise<Result> {
    await makeFolder(this.#options.folder);
    return this.#lock.hold(work);
  }

  async #acquire(tenantId: string): Promise<SqliteFile> {
    const kept = this.#open.get(tenantId);
    if (kept?.isInPlace === true) return kept;
    this.#open.delete(tenantId);
    let opening = this.#opening.get(tenantId);
    if (opening === undefined) {
      opening = this.#openFile(tenantId).finally(() => this.#opening.delete(tenantId));
      this.#opening.set(tenantId, opening);
    }
    return opening;
  }

  async #openFile(tenantId: string): Promise<SqliteFile> {
    const options = { tenantId, path: this.#toPath(tenantId), bootId: this.#options.bootId, log: this.#options.log };
    const file = (await openIndexFile(options)) ?? (await this.#locked(async () => prepareIndexFile(options)));
    this.#open.set(tenantId, file);
    return file;
  }

  #toPath(tenantId: string): string {
    return join(this.#options.folder, tenantId, 'data.db');
  }
}

/** A folder that another process deletes between two steps of making it is made again. */
async function makeFolder(path: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await mkdir(path, { recursive: true, mode: 0o700 });
      return;
    } catch (error) {
      const isGone = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      if (!isGone || tries === FOLDER_TRIES) throw error;
    }
  }
}

/** Tries again while another process writes. */
async function whileBusy<Result>(work: () => Promise<Result>): Promise<Result> {
  const until = Date.now() + BUSY_WAIT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (sqliteTrouble(error) !== 'busy') throw error;
      if (Date.now() > until) throw new AppError('overloaded', 'The index is busy', { cause: error, retryAfterSeconds: 2 });
      await wait(BUSY_TRY_EVERY_MS);
    }
  }
}
