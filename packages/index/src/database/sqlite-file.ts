import { statSync } from 'node:fs';
import { openSqlite, type SqliteConnection } from '@concierge/runtime';
import { Kysely } from 'kysely';
import { getLoadablePath } from 'sqlite-vec';
import type { IndexTables } from './tables.ts';

/**
 * Long enough for another process's write of one turn; a longer one is waited for outside, where the event loop goes
 * on.
 */
const BUSY_TIMEOUT_MS = 5;

/**
 * One open `data.db`. It is closed when it has been retired and has no more users.
 *
 * Written with `synchronous = off`: a killed process loses nothing, as the operating system has the data; only a power
 * cut or a crash of the machine can lose or tear what was written last. Such a file is found by the boot it belongs to
 * (`sqlite-open.ts`) and is rebuilt from the tenant's files, so no turn ever waits for the index to reach the disk.
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
