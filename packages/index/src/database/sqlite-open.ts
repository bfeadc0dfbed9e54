import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { sqliteTrouble, type Log } from '@concierge/runtime';
import { sql } from 'kysely';
import { readMeta, writeMeta } from './meta.ts';
import { migrations, NewerIndexError } from './migrations.ts';
import { fileIdentity, SqliteFile } from './sqlite-file.ts';

export interface SqliteOpenOptions {
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
    if (version > migrations.length) return 'newer';
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
      await sql.raw(`pragma user_version = ${String(migrations.length)}`).execute(db);
    });
    return file;
  } catch (error) {
    file.retire();
    throw error;
  }
}
