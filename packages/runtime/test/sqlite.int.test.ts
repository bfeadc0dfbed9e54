import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openSqlite, sqliteErrorCode, type SqliteConnection, type SqliteOptions } from '@concierge/runtime';
import { temporaryDirectory } from '@concierge/testing';
import { Kysely, sql } from 'kysely';

interface Tables {
  notes: { id: number; text: string | null; done: number };
}

describe('openSqlite', () => {
  let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
  const opened: SqliteConnection[] = [];

  beforeEach(async () => {
    folder = await temporaryDirectory();
  });
  afterEach(async () => {
    for (const connection of opened.splice(0)) connection.close();
    await folder[Symbol.asyncDispose]();
  });

  const path = () => join(folder.path, 'notes and #1?.db');
  function open(options: SqliteOptions = {}): Kysely<Tables> {
    const connection = openSqlite(path(), options);
    opened.push(connection);
    return new Kysely<Tables>({ dialect: connection.dialect });
  }
  async function createNotes(db: Kysely<Tables>): Promise<void> {
    await sql`create table notes (id integer primary key, text text, done integer not null default 0)`.execute(db);
  }

  it('writes and reads through kysely, with counts and keys', async () => {
    const db = open();
    await createNotes(db);
    const inserted = await db.insertInto('notes').values({ id: 7, text: null, done: 0 }).executeTakeFirst();
    expect(inserted.insertId).toBe(7n);
    expect((await db.updateTable('notes').set({ text: 'ü😀' }).executeTakeFirst()).numUpdatedRows).toBe(1n);
    expect((await db.insertInto('notes').values({ id: 8, text: 'b', done: 1 }).returning('id').execute()).map(({ id }) => id)).toEqual([8]);
    expect((await db.selectFrom('notes').selectAll().orderBy('id').execute()).map((row) => ({ ...row }))).toEqual([
      { id: 7, text: 'ü😀', done: 0 },
      { id: 8, text: 'b', done: 1 },
    ]);
    expect((await sql<{ one: number }>`select ${true} as one`.execute(db)).rows[0]?.one).toBe(1);
    await expect(sql`select ${{}} as one`.execute(db)).rejects.toThrow('cannot bind');
  });

  it('streams rows', async () => {
    const db = open();
    await createNotes(db);
    await db
      .insertInto('notes')
      .values([1, 2, 3].map((id) => ({ id, text: null, done: 0 })))
      .execute();
    const ids: number[] = [];
    for await (const row of db.selectFrom('notes').select('id').orderBy('id').stream()) ids.push(row.id);
    expect(ids).toEqual([1, 2, 3]);
  });

  it('undoes a transaction that fails', async () => {
    const db = open();
    await createNotes(db);
    const failing = db.transaction().execute(async (within) => {
      await within.insertInto('notes').values({ id: 1, text: 'a', done: 0 }).execute();
      throw new Error('changed my mind');
    });
    await expect(failing).rejects.toThrow('changed my mind');
    expect(await db.selectFrom('notes').selectAll().execute()).toEqual([]);
  });

  it('runs the transactions of one connection one after another', async () => {
    const db = open();
    await createNotes(db);
    await db.insertInto('notes').values({ id: 1, text: '0', done: 0 }).execute();
    const add = async () =>
      db.transaction().execute(async (within) => {
        const { text } = await within.selectFrom('notes').select('text').executeTakeFirstOrThrow();
        await within
          .updateTable('notes')
          .set({ text: String(Number(text) + 1) })
          .execute();
      });
    await Promise.all(Array.from({ length: 20 }, add));
    expect((await db.selectFrom('notes').select('text').executeTakeFirst())?.text).toBe('20');
  });

  it('takes the write lock when a transaction begins, and reports busy to the other', async () => {
    const [one, other] = [open(), open({ busyTimeoutMs: 1 })];
    await createNotes(one);
    const failure = one.transaction().execute(async () => other.transaction().execute(async () => Promise.resolve()));
    await expect(failure.catch((error: unknown) => sqliteErrorCode(error))).resolves.toBe(5);
  });

  it('keeps to foreign keys', async () => {
    const db = open();
    await createNotes(db);
    await sql`create table marks (note integer not null references notes (id))`.execute(db);
    const failure: unknown = await sql`insert into marks values (1)`.execute(db).catch((error: unknown) => error);
    expect(sqliteErrorCode(failure)).toBe(19);
  });

  it('fails on what is no database, and on what is not there and must not be made', async () => {
    const readCode = (options: SqliteOptions) => {
      try {
        open(options);
        return 0;
      } catch (error) {
        return sqliteErrorCode(error);
      }
    };
    expect(readCode({ create: false })).toBe(14);
    await writeFile(path(), 'garbage '.repeat(1000));
    expect(readCode({})).toBe(26);
    expect(sqliteErrorCode(new Error('another'))).toBeUndefined();
  });

  it('can be closed twice', () => {
    const connection = openSqlite(path());
    connection.close();
    connection.close();
    expect(connection.database.isOpen).toBe(false);
  });
});
