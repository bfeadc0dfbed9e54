import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import {
  CompiledQuery,
  SqliteAdapter,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type SqliteDatabase,
  type SqliteStatement,
} from 'kysely';

export interface SqliteOptions {
  /**
   * How long a statement waits for another process's lock before it fails with SQLITE_BUSY. It waits **inside** the
   * call and stops the event loop meanwhile: keep it short and try again from outside.
   */
  readonly busyTimeoutMs?: number;
  /**
   * `normal` survives a power cut without losing its shape. `off` leaves writing to the operating system, which is as
   * safe against a killed process, but a power cut may leave the file torn: only for what can be rebuilt.
   */
  readonly synchronous?: 'normal' | 'off';
  /**
   * `delete` where nothing is kept in it: one file instead of three, on network file systems, too. `wal` unless given.
   */
  readonly journal?: 'wal' | 'delete';
  /** False: fails with SQLITE_CANTOPEN where there is no file. True unless given. */
  readonly create?: boolean;
  /** Allows `loadExtension`. */
  readonly extensions?: boolean;
  /** The size of the page cache, per connection. */
  readonly cacheKib?: number;
}

export interface SqliteConnection {
  readonly database: DatabaseSync;
  /** The dialect for one `Kysely`. Its transactions take the write lock when they begin. */
  readonly dialect: Dialect;
  /**
   * Takes in a library of functions; only where `extensions` was given. Nothing that runs as SQL can.
   * @throws when it cannot be loaded
   */
  loadExtension(path: string): void;
  close(): void;
}

const BUSY_TIMEOUT_MS = 50;
const CACHE_KIB = 1024;
/**
 * Statements kept prepared; queries come from code, so there are a few dozen shapes, but for lists of varying length.
 */
const STATEMENTS_MAX = 100;

/**
 * Opens a database, in WAL mode by default, with foreign keys on. The caller closes it; `destroy` of a Kysely over the
 * dialect closes it too.
 * @throws the error of node:sqlite; `sqliteErrorCode` reads it
 */
export function openSqlite(path: string, options: SqliteOptions = {}): SqliteConnection {
  const location = pathToFileURL(path);
  location.searchParams.set('mode', options.create === false ? 'rw' : 'rwc');
  const database = new DatabaseSync(location, {
    timeout: options.busyTimeoutMs ?? BUSY_TIMEOUT_MS,
    enableForeignKeyConstraints: true,
    allowExtension: options.extensions === true,
  });
  try {
    if (options.extensions === true) database.enableLoadExtension(false);
    database.exec(
      `pragma journal_mode = ${options.journal ?? 'wal'}; pragma synchronous = ${options.synchronous ?? 'normal'}; pragma cache_size = -${String(options.cacheKib ?? CACHE_KIB)};`,
    );
  } catch (error) {
    database.close();
    throw error;
  }
  const prepared = new PreparedDatabase(database);
  const loadExtension = (library: string): void => {
    database.enableLoadExtension(true);
    try {
      database.loadExtension(library);
    } finally {
      database.enableLoadExtension(false);
    }
  };
  return { database, dialect: createDialect(prepared), loadExtension, close: () => prepared.close() };
}

/**
 * SQLite's primary result code (sqlite.org/rescode.html), as in 5 for SQLITE_BUSY; undefined for what is no error of
 * SQLite.
 */
export function sqliteErrorCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}

/**
 * `busy`: another process holds the lock. `lost`: the file was removed under the connection. `corrupt`: no database, or
 * a broken one.
 */
export type SqliteTrouble = 'busy' | 'lost' | 'corrupt';

/** By primary result code, https://www.sqlite.org/rescode.html. */
const troubles = new Map<number | undefined, SqliteTrouble>([
  [5 /* BUSY */, 'busy'],
  [6 /* LOCKED */, 'busy'],
  [8 /* READONLY */, 'lost'],
  [10 /* IOERR */, 'lost'],
  [11 /* CORRUPT */, 'corrupt'],
  [14 /* CANTOPEN */, 'lost'],
  [26 /* NOTADB */, 'corrupt'],
]);

export function sqliteTrouble(error: unknown): SqliteTrouble | undefined {
  return troubles.get(sqliteErrorCode(error));
}

function createDialect(database: PreparedDatabase): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new ImmediateDriver(database),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/**
 * A deferred transaction that reads before it writes fails at once with SQLITE_BUSY_SNAPSHOT when another process wrote
 * in between.
 */
class ImmediateDriver extends SqliteDriver {
  readonly #database: PreparedDatabase;

  constructor(database: PreparedDatabase) {
    super({ database });
    this.#database = database;
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  /** A full disk or an I/O error has rolled back already; a second one would hide the error that did it. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#database.isTransaction) await super.rollbackTransaction(connection);
  }
}

/** node:sqlite in the shape that kysely's SQLite driver wants, with its statements kept. */
class PreparedDatabase implements SqliteDatabase {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, SqliteStatement>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  prepare(sql: string): SqliteStatement {
    const kept = this.#statements.get(sql);
    if (kept !== undefined) return kept;
    const statement = new PreparedStatement(this.#database.prepare(sql));
    if (this.#statements.size >= STATEMENTS_MAX) this.#statements.clear();
    this.#statements.set(sql, statement);
    return statement;
  }

  get isTransaction(): boolean {
    return this.#database.isTransaction;
  }

  close(): void {
    this.#statements.clear();
    if (this.#database.isOpen) this.#database.close();
  }
}

class PreparedStatement implements SqliteStatement {
  readonly reader: boolean;
  readonly #statement: StatementSync;

  constructor(statement: StatementSync) {
    this.#statement = statement;
    this.reader = statement.columns().length > 0;
  }

  all(parameters: readonly unknown[]): unknown[] {
    return this.#statement.all(...parameters.map(bindable));
  }

  run(parameters: readonly unknown[]): { changes: number | bigint; lastInsertRowid: number | bigint } {
    return this.#statement.run(...parameters.map(bindable));
  }

  iterate(parameters: readonly unknown[]): IterableIterator<unknown> {
    return this.#statement.iterate(...parameters.map(bindable));
  }
}

function bindable(value: unknown): SQLInputValue {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (value instanceof Uint8Array) return value;
  throw new TypeError(`SQLite cannot bind a ${typeof value}`);
}
