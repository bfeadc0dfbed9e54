import { setTimeout as wait } from 'node:timers/promises';
import { openSqlite, sqliteTrouble, type SqliteConnection } from '../sqlite.ts';

const LOCK_WAIT_MS = 10_000;
const LOCK_TRY_EVERY_MS = 20;

/**
 * One holder among all processes of the machine, for rare operations such as creating, replacing or removing index
 * files. It is a lock of the operating system, through an empty SQLite file: the death of its holder frees it.
 */
export class SqliteLock {
  /** The lock file, in an existing folder. */
  readonly #path: string;
  #last: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  /** @throws SQLITE_BUSY when another process holds it for ten seconds */
  async hold<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(async () => this.#hold(work));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #hold<Result>(work: () => Promise<Result>): Promise<Result> {
    const lock = await this.#take();
    try {
      return await work();
    } finally {
      lock.close();
    }
  }

  async #take(): Promise<SqliteConnection> {
    // By no clock: in a time in which this process stood still, it has not looked.
    for (let leftMs = LOCK_WAIT_MS; ; leftMs -= LOCK_TRY_EVERY_MS) {
      try {
        return this.#tryOnce();
      } catch (error) {
        if (sqliteTrouble(error) !== 'busy' || leftMs <= 0) throw error;
        await wait(LOCK_TRY_EVERY_MS);
      }
    }
  }

  /** Waits outside SQLite, so that the event loop continues. */
  #tryOnce(): SqliteConnection {
    const lock = openSqlite(this.#path, { busyTimeoutMs: 0, journal: 'delete' });
    try {
      lock.database.exec('begin exclusive');
      return lock;
    } catch (error) {
      lock.close();
      throw error;
    }
  }
}
