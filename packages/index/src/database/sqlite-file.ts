import { statSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { openSqlite, type SqliteConnection, sqliteTrouble, type Log } from '@concierge/runtime';
import { Kysely, sql } from 'kysely';
import { getLoadablePath } from 'sqlite-vec';
import type { IndexTables } from './tables.ts';
import { readMeta, writeMeta } from './meta.ts';
import { isTooNew, migrations, NewerIndexError, oldestReader } from './migrations.ts';

/**
 * Long enough for another process's write of one turn; a longer one is waited for outside, where the event loop goes
 * on.
 */
const BUSY_TIMEOUT_MS = 5;
/** https://www.sqlite.org/rescode.html */
const sqliteBusy = 5;

/**
 * One open `data.db`. It is closed when it has been retired and has no more users.
 *
 * Written with `synchronous = off`: a killed process loses nothing, as the operating system has the data; only a power
 * cut or a crash of the machine can lose or tear what was written last. Such a file is found by the boot it belongs to
 * (`openIndexFile`) and is rebuilt from the tenant's files, so no turn ever waits for the index to reach the disk.
 */
export class SqliteFile {
  readonly path: string;
  readonly db: Kysely<IndexTables>;
  /** A rebuild is known to have filled it; false must be asked again, another process may have done it. */
  built = false;
  readonly #connection: SqliteConnection;
  readonly #identity: string | undefined;
  #comparesVectors: boolean | undefined;
  #users = 0;
  #retired = false;

  constructor(path: string, { create }: { readonly create: boolean }) {
    this.path = path;
    this.#connection = openSqlite(path, { create, synchronous: 'off', busyTimeoutMs: BUSY_TIMEOUT_MS, extensions: true });
    this.db = new Kysely({ dialect: this.#connection.dialect });
    this.#identity = fileIdentity(path);
  }

  /** Number of migrations that have run. */
  get version(): number {
    const row = this.#connection.database.prepare('pragma user_version').get();
    return Number(row?.['user_version'] ?? 0);
  }

  /**
   * Is the file that is open still the one at its path? After the index was deleted, no answer may come from the
   * deleted file.
   */
  get isInPlace(): boolean {
    return fileIdentity(this.path) === this.#identity;
  }

  /** Makes this connection compare vectors; false where sqlite-vec is not built for this machine. */
  loadVectors(): boolean {
    this.#comparesVectors ??= this.#loadVectors();
    return this.#comparesVectors;
  }

  /** Gives the space of the write-ahead log back; after a rebuild it is as large as the index. */
  truncateLog(): void {
    this.#connection.database.exec('pragma wal_checkpoint(truncate)');
  }

  /** Writes the file anew, without its free pages, and empties its log. @throws SQLITE_BUSY, while others read */
  rewrite(): void {
    const { database } = this.#connection;
    database.exec('vacuum');
    const busy = database.prepare('pragma wal_checkpoint(truncate)').get()?.['busy'];
    if (busy !== 0) throw Object.assign(new Error('readers of the index hold its log'), { errcode: sqliteBusy });
  }

  async use<Result>(work: (file: SqliteFile) => Promise<Result>): Promise<Result> {
    this.#users += 1;
    try {
      return await work(this);
    } finally {
      this.#users -= 1;
      this.#closeWhenDone();
    }
  }

  /** Not at once: a caller that was handed the file in this turn of the event loop has not begun to use it. */
  retire(): void {
    setImmediate(() => {
      this.#retired = true;
      this.#closeWhenDone();
    });
  }

  #loadVectors(): boolean {
    try {
      this.#connection.loadExtension(getLoadablePath());
      return true;
    } catch {
      return false;
    }
  }

  #closeWhenDone(): void {
    if (this.#retired && this.#users === 0) this.#connection.close();
  }
}

/** Changes when the file is replaced; undefined when there is none. */
export function fileIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats && `${String(stats.dev)}:${String(stats.ino)}`;
}

interface SqliteOpenOptions {
  readonly tenantId: string;
  readonly path: string;
  /** The machine's present boot; a file with another one may have lost its last writes. */
  readonly bootId: string;
  readonly log: Log;
}

type Condition = 'current' | 'older' | 'newer' | 'earlier boot';

/**
 * The usual case, without a lock; undefined when `prepareIndexFile` is needed. Throws only when the file is busy or
 * cannot be opened at all.
 */
export async function openIndexFile(options: SqliteOpenOptions): Promise<SqliteFile | undefined> {
  if (fileIdentity(options.path) === undefined) return undefined;
  const file = connect(options.path);
  if (file === undefined) return undefined;
  const condition = await examine(file, options);
  if (condition === 'current') return file;
  file.retire();
  return undefined;
}

/**
 * Leaves a file with today's tables at the path. Run it under a lock that keeps every other process from doing the
 * same: it replaces files. A broken one is kept beside it, once, as `data.db.corrupt`.
 */
export async function prepareIndexFile(options: SqliteOpenOptions): Promise<SqliteFile> {
  const existing = await usable(options);
  if (existing !== undefined) return migrated(existing, options);
  mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 });
  // A log that outlived its database would be taken for the new one's.
  for (const suffix of ['', '-wal', '-shm']) rmSync(options.path + suffix, { force: true });
  return migrated(new SqliteFile(options.path, { create: true }), options);
}

async function usable(options: SqliteOpenOptions): Promise<SqliteFile | undefined> {
  if (fileIdentity(options.path) === undefined) return undefined;
  const file = connect(options.path);
  const condition = file === undefined ? 'corrupt' : await examine(file, options);
  switch (condition) {
    case 'current':
    case 'older': {
      return file;
    }
    case 'newer': {
      file?.retire();
      throw new NewerIndexError(options.path);
    }
    case 'earlier boot': {
      options.log.info({ tenantId: options.tenantId }, 'the machine was restarted: the index is rebuilt');
      file?.retire();
      return undefined;
    }
    case 'corrupt': {
      setAside(options);
      return undefined;
    }
  }
}

/**
 * Under the same lock: moves a file away that turned out to be broken while it was used, unless another process has
 * replaced it already.
 */
export function quarantine(file: SqliteFile, options: Pick<SqliteOpenOptions, 'tenantId' | 'log'>): void {
  if (file.isInPlace) setAside({ ...options, path: file.path });
}

function setAside({ tenantId, path, log }: Omit<SqliteOpenOptions, 'bootId'>): void {
  log.warn({ tenantId }, 'the index is corrupt: it is kept as data.db.corrupt and rebuilt');
  renameSync(path, `${path}.corrupt`);
}

async function examine(file: SqliteFile, options: SqliteOpenOptions): Promise<Condition | 'corrupt'> {
  try {
    const { version } = file;
    const named = version > migrations.length ? await readMeta(file.db, options.tenantId, 'oldest_reader') : undefined;
    if (isTooNew({ version, oldestReader: named === undefined ? undefined : Number(named) })) return 'newer';
    if (version === 0) return 'older';
    if ((await readMeta(file.db, options.tenantId, 'boot')) !== options.bootId) return 'earlier boot';
    return version < migrations.length ? 'older' : 'current';
  } catch (error) {
    file.retire();
    if (sqliteTrouble(error) === 'corrupt') return 'corrupt';
    throw error;
  }
}

function connect(path: string): SqliteFile | undefined {
  try {
    return new SqliteFile(path, { create: false });
  } catch (error) {
    if (sqliteTrouble(error) === 'corrupt') return undefined;
    throw error;
  }
}

async function migrated(file: SqliteFile, options: SqliteOpenOptions): Promise<SqliteFile> {
  try {
    await file.db.transaction().execute(async (db) => {
      for (const migrate of migrations.slice(file.version)) await migrate(db, 'sqlite');
      await writeMeta(db, { account_id: options.tenantId, key: 'boot', value: options.bootId });
      // Another process may have migrated it further.
      if (file.version > migrations.length) return;
      await writeMeta(db, { account_id: options.tenantId, key: 'oldest_reader', value: String(oldestReader) });
      await sql.raw(`pragma user_version = ${String(migrations.length)}`).execute(db);
    });
    return file;
  } catch (error) {
    file.retire();
    throw error;
  }
}
