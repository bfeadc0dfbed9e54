import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { openSqlite } from '@concierge/runtime';
import { sqliteTrouble } from './sqlite-file.ts';

const LOCK_WAIT_MS = 10_000;
const LOCK_TRY_EVERY_MS = 20;

/**
 * One holder among all processes of the machine, for the rare moments in which index files are created, replaced or removed. It is a lock of the
 * operating system, through an empty SQLite file: the death of its holder frees it.
 */
export class SqliteLock {
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
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    const lock = openSqlite(this.#path);
    try {
      const until = Date.now() + LOCK_WAIT_MS;
      while (!lock.database.isTransaction) {
        try {
          lock.database.exec('begin exclusive');
        } catch (error) {
          if (sqliteTrouble(error) !== 'busy' || Date.now() > until) throw error;
          await wait(LOCK_TRY_EVERY_MS);
        }
      }
      return await work();
    } finally {
      lock.close();
    }
  }
}
