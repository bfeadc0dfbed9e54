import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openSqlite } from '@concierge/runtime';
import { eventually, silentLog, temporaryDirectory } from '@concierge/testing';
import { Kysely, sql } from 'kysely';
import { storeOver, type IndexStore } from '../src/open-index.ts';
import { migrations } from '../src/database/migrations.ts';
import { SqliteBackend } from '../src/database/sqlite-backend.ts';
import { dropLaterColumns, Files, session, sessionId, skill, turn } from './index-samples.ts';

describe('the SQLite files of the index', () => {
  let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
  const stores: IndexStore[] = [];

  beforeEach(async () => {
    folder = await temporaryDirectory();
  });
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    await folder[Symbol.asyncDispose]();
  });

  const indexFolder = () => join(folder.path, 'index');
  const buildFilePath = (tenantId: string) => join(indexFolder(), tenantId, 'data.db');
  function openStore(options: { bootId?: string; openMax?: number } = {}): IndexStore {
    const { bootId = 'this boot', ...rest } = options;
    const store = storeOver(new SqliteBackend({ folder: indexFolder(), bootId, log: silentLog, ...rest }));
    stores.push(store);
    return store;
  }
  const ids = async (store: IndexStore, source?: Files) =>
    (await store.forTenant('acme', source).listSessions({ limit: 100 })).items.map(({ id }) => id);

  it('makes no file before a tenant is used', async () => {
    const store = openStore();
    await store.check();
    store.forTenant('acme', new Files());
    expect(await readdir(indexFolder())).toEqual([]);
    await store.forTenant('acme').putSession(session(1));
    expect(existsSync(buildFilePath('acme'))).toBe(true);
  });

  it('keeps a bounded number of files open and loses nothing by it', async () => {
    const store = openStore({ openMax: 3 });
    const tenants = Array.from({ length: 30 }, (_, number) => `tenant-${String(number)}`);
    for (const round of [1, 2]) {
      await Promise.all(tenants.map(async (tenant) => store.forTenant(tenant).putSession(session(round))));
    }
    await eventually(() => openFiles(indexFolder()).length <= 3);
    for (const tenant of tenants) expect((await store.forTenant(tenant).listSessions({ limit: 9 })).items.length).toBe(2);
  });

  it('closes every file when it is closed', async () => {
    const store = openStore();
    await store.forTenant('acme').putSession(session(1));
    expect(openFiles(indexFolder())).toEqual([buildFilePath('acme')]);
    await store.close();
    expect(openFiles(indexFolder())).toEqual([]);
  });

  it('sets a file aside that is no database, and rebuilds it on the first read', async () => {
    await mkdir(join(indexFolder(), 'acme'), { recursive: true });
    await writeFile(buildFilePath('acme'), 'garbage '.repeat(4096));
    const store = openStore();
    expect(await store.isFresh('acme')).toBe(true);
    expect(await ids(store, new Files(session(1)))).toEqual([sessionId(1)]);
    expect(await readFile(`${buildFilePath('acme')}.corrupt`, 'utf8')).toContain('garbage');
  });

  it('sets a file aside that turns out to be broken while it is in use', async () => {
    const files = new Files(...Array.from({ length: 100 }, (_, number) => session(number, { turns: [turn(`t${String(number)}`)] })));
    const first = openStore();
    await first.rebuild('acme', files);
    await first.close();
    const bytes = await readFile(buildFilePath('acme'));
    // The first page, the header and the list of tables, stays whole.
    await writeFile(buildFilePath('acme'), Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096, 'x')]));
    expect((await ids(openStore(), files)).length).toBe(100);
    expect(existsSync(`${buildFilePath('acme')}.corrupt`)).toBe(true);
  });

  it('repairs a broken file by a rebuild and by a write, too', async () => {
    const store = openStore();
    await store.rebuild('acme', new Files(session(1)));
    await store.close();
    for (const use of [
      async (one: IndexStore) => one.rebuild('acme', new Files(session(1))),
      async (one: IndexStore) => one.forTenant('acme').putSession(session(1)),
    ]) {
      await writeFile(buildFilePath('acme'), 'garbage '.repeat(4096));
      const reopened = openStore();
      await use(reopened);
      expect(await ids(reopened)).toEqual([sessionId(1)]);
      await reopened.close();
    }
  });

  it('notices that its file was deleted while it was open', async () => {
    const files = new Files(session(1), session(2));
    const [writer, reader] = [openStore(), openStore()];
    expect((await ids(reader, files)).length).toBe(2);
    await writer.forTenant('acme').putSession(session(3));
    files.held.push({ session: session(3), turns: [] });

    await rm(indexFolder(), { recursive: true });
    await writer.forTenant('acme').putSession(session(4));
    files.held.push({ session: session(4), turns: [] });
    expect((await ids(reader, files)).length).toBe(4);
    await writer.forTenant('acme').putSession(session(5));
    expect((await ids(reader, files)).length).toBe(5);
  });

  it('learns from the files what began the sessions that an earlier version listed', async () => {
    const files = new Files(session(1, { origin: 'heartbeat' }), session(2, { origin: 'user' }));
    const earlier = openStore();
    await earlier.rebuild('acme', files);
    await earlier.close();
    const file = openSqlite(buildFilePath('acme'));
    file.database.exec(`${dropLaterColumns} pragma user_version = 2`);
    file.close();

    const store = openStore();
    const { items } = await store.forTenant('acme', files).listSessions({ limit: 9 });
    expect(items.map(({ id, origin }) => [id, origin])).toEqual([
      [sessionId(2), 'user'],
      [sessionId(1), 'heartbeat'],
    ]);
    expect((await store.rebuild('acme', files)).sessions).toEqual({ added: 0, changed: 0, removed: 0 });
  });

  it('does not take the log of a deleted file for that of the new one', async () => {
    const store = openStore();
    await store.forTenant('acme').putSession(session(1));
    await rm(buildFilePath('acme'));
    expect(await ids(openStore(), new Files(session(2)))).toEqual([sessionId(2)]);
    expect(await ids(store, new Files(session(2)))).toEqual([sessionId(2)]);
  });

  it('survives being deleted again and again under load', async () => {
    const [writer, reader] = [openStore(), openStore()];
    const files = new Files();
    for (let round = 0; round < 10; round += 1) {
      const writes = Array.from({ length: 20 }, async (_, step) => {
        const put = session(round * 20 + step, { turns: [turn(`t${String(round)}-${String(step)}`)] });
        files.held.push({ session: put, turns: put.turns });
        await writer.forTenant('acme').putSession(put);
        await reader.forTenant('acme', files).listSessions({ limit: 1 });
        if (step === 10) await rm(indexFolder(), { recursive: true, force: true, maxRetries: 5 });
      });
      await Promise.all(writes);
    }
    const usage = await openStore().forTenant('acme', files).usage({});
    expect(usage[0]?.turns).toBe(200);
  });

  it('throws a file of an earlier boot away: a power cut may have taken its last writes', async () => {
    const before = openStore({ bootId: 'earlier boot' });
    await before.rebuild('acme', new Files(session(1)));
    await before.close();
    const store = openStore();
    expect(await store.isFresh('acme')).toBe(true);
    expect(await ids(store, new Files(session(1), session(2)))).toEqual([sessionId(2), sessionId(1)]);
    const again = openStore();
    expect(await again.isFresh('acme')).toBe(false);
  });

  it('refuses a file that a newer version wrote for itself, and leaves it alone', async () => {
    const store = openStore();
    await store.forTenant('acme').putSession(session(1));
    await store.close();
    const file = openSqlite(buildFilePath('acme'));
    file.database.exec(`update meta set value = '999' where key = 'oldest_reader'; pragma user_version = 999`);
    file.close();
    await expect(ids(openStore())).rejects.toThrow('newer version');
    expect(existsSync(buildFilePath('acme'))).toBe(true);
  });

  it('goes on with a file of a newer version that names this one as a reader, and leaves it as it is', async () => {
    const store = openStore();
    const files = new Files(session(1));
    await store.rebuild('acme', files);
    await store.close();
    const file = openSqlite(buildFilePath('acme'));
    file.database.exec(`alter table sessions add column mood text not null default 'none';
      insert into meta (account_id, key, value) values ('acme', 'oldest_reader', '${String(migrations.length)}')
      on conflict do update set value = excluded.value; pragma user_version = 999`);
    const earlier = openStore();
    await earlier.forTenant('acme').putSession(session(2));
    expect(await ids(earlier)).toEqual([sessionId(2), sessionId(1)]);
    files.held.push({ session: session(3), turns: [] });
    await earlier.rebuild('acme', files);
    expect(file.database.prepare('pragma user_version').get()).toEqual({ user_version: 999 });
    expect(file.database.prepare('select id, mood from sessions order by id').all()).toHaveLength(2);
    file.close();
  });

  it('is made once when many processes meet an empty folder', async () => {
    const many = Array.from({ length: 8 }, () => openStore());
    await Promise.all(many.map(async (store, number) => store.forTenant('acme').putSession(session(number))));
    expect((await ids(openStore())).length).toBe(8);
  });

  it('waits for a write lock without stopping the process, and reports when it takes too long', async () => {
    const store = openStore();
    await store.forTenant('acme').putSession(session(1));
    const other = openSqlite(buildFilePath('acme'));
    other.database.exec('begin immediate');
    const put = store.forTenant('acme').putSession(session(2));
    expect(await ids(store)).toEqual([sessionId(1)]);
    other.database.exec('commit');
    await put;
    other.close();
    expect((await ids(store)).length).toBe(2);
  });

  it('finds what was put of a busy tenant also while another process keeps the write lock', async () => {
    const [store, other] = [openStore(), openStore()];
    for (const number of [1, 2, 3]) await store.forTenant('acme').putSession(session(number, { turns: [turn(`t${String(number)}`)] }));
    const locked = openSqlite(buildFilePath('acme'));
    locked.database.exec('begin immediate');
    expect(await other.forTenant('acme').findTurn('t3')).toMatchObject({ sessionId: sessionId(3), record: { id: 't3' } });
    locked.database.exec('commit');
    locked.close();
  });

  it('has the turns of a busy tenant in its lists a second later, without a reader', async () => {
    const store = openStore();
    for (const number of [1, 2, 3, 4]) await store.forTenant('acme').putSession(session(number));
    const file = openSqlite(buildFilePath('acme'));
    const count = (table: string) => Number(file.database.prepare(`select count(*) as count from ${table}`).get()?.['count']);
    expect(count('sessions') + count('pending')).toBe(4);
    await eventually(() => count('pending') === 0);
    expect(count('sessions')).toBe(4);
    file.close();
  });

  it('shows an older list rather than none while a rebuild keeps a busy tenant locked', async () => {
    const store = openStore();
    for (const number of [1, 2]) await store.forTenant('acme').putSession(session(number));
    const other = openSqlite(buildFilePath('acme'));
    other.database.exec('begin immediate');
    expect(await ids(store)).toContain(sessionId(1));
    other.database.exec('commit');
    other.close();
    expect((await ids(store)).length).toBe(2);
  });

  it('makes no file for a busy tenant that another process has deleted', async () => {
    const [store, other] = [openStore(), openStore()];
    for (const tenant of ['acme', 'other']) {
      for (const number of [1, 2]) await store.forTenant(tenant).putSession(session(number));
    }
    await other.drop('acme');
    const file = openSqlite(buildFilePath('other'));
    await eventually(() => file.database.prepare('select count(*) as count from pending').get()?.['count'] === 0);
    file.close();
    expect(existsSync(buildFilePath('acme'))).toBe(false);
  });

  it('finds a page of sessions through an index, without sorting', async () => {
    const store = openStore();
    await store.forTenant('acme').putSessions(Array.from({ length: 50 }, (_, number) => ({ session: session(number) })));
    await store.forTenant('acme').replaceSkills([skill('a')]);
    const connection = openSqlite(buildFilePath('acme'));
    const db = new Kysely<object>({ dialect: connection.dialect });
    const plan = async (where: string, table: string, order: string) => {
      const query = sql<{
        detail: string;
      }>`explain query plan select * from ${sql.table(table)} where account_id = 'acme' ${sql.raw(where)} order by ${sql.raw(order)} limit 26`;
      return (await query.execute(db)).rows.map(({ detail }) => detail).join('; ');
    };
    const [bySession, byTurn] = ['updated_at desc, id desc', 'accepted_at desc, id desc'];
    const plans = [
      await plan('', 'sessions', bySession),
      await plan('and (updated_at, id) < (5, 6)', 'sessions', bySession),
      await plan(`and agent = 'cs' and (updated_at, id) < (5, 6)`, 'sessions', bySession),
      await plan('and (accepted_at, id) < (5, 6)', 'turns', byTurn),
      await plan(`and status = 'failed' and status <> 'done'`, 'turns', byTurn),
    ];
    connection.close();
    for (const each of plans) expect(each).toMatch(/USING (COVERING )?INDEX/u);
    expect(plans.join('; ')).not.toContain('TEMP B-TREE');
    expect(plans[4]).toContain('turns_not_done');
  });
});

/** The database files under a folder that this process has open now (Linux). */
function openFiles(folder: string): string[] {
  const open = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  });
  return [...new Set(open)].filter((path) => path.startsWith(folder) && path.endsWith('data.db'));
}
