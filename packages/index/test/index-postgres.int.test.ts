import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ConfigError, createLog } from '@concierge/runtime';
import { openPostgres, type PostgresConnection } from '@concierge/runtime/postgres';
import { canRunPostgres, eventually, silentLog, startPostgres, type TestPostgres } from '@concierge/testing';
import { openIndex, type IndexStore } from '../src/open-index.ts';
import { migrations } from '../src/database/migrations.ts';
import { indexTableNames } from '../src/database/tables.ts';
import { dropLaterColumns, Files, session, sessionId, skill, turn } from './index-samples.ts';

(canRunPostgres() ? describe : describe.skip)('the index in PostgreSQL', () => {
  let cluster: TestPostgres;
  let url: string;
  let store: IndexStore;
  let direct: PostgresConnection;

  beforeAll(async () => {
    cluster = await startPostgres();
  });
  afterAll(async () => cluster.stop());
  beforeEach(async () => {
    url = await cluster.createDatabase();
    store = await open(url);
    direct = openPostgres({ url, log: silentLog });
  });
  afterEach(async () => {
    await store.close();
    await direct.close();
  });

  const open = async (databaseUrl: string) => openIndex({ databaseUrl, dataDir: '/nonexistent', log: silentLog });

  async function fill(tenantId: string): Promise<void> {
    const index = store.forTenant(tenantId);
    await index.putSession(session(1, { title: `of ${tenantId}`, turns: [turn('t1')] }));
    await index.replaceSkills([skill('booking')]);
    const passage = { title: '', heading: '', text: `a passage of ${tenantId}`, place: 1, atMs: 0 };
    await index.passages.put({ kind: 'note', owner: 'owner', ref: 'MEMORY.md' }, { stamp: '1', passages: [passage] });
    await index.passages.putVectors('m', [{ hash: 'h', vector: Float32Array.of(1, 0) }]);
    await store.rebuild(tenantId, new Files(session(1, { title: `of ${tenantId}`, turns: [turn('t1')] })));
  }

  it('opens no more connections than its pool has', async () => {
    await store.close();
    // The server ends a connection some time after it was closed here; it opens some itself, for its own work.
    await eventually(async () => (await countOpen()) === 0);
    const small = await openIndex({ databaseUrl: url, databasePool: 2, dataDir: '/nonexistent', log: silentLog });
    await fillWith(small);
    const open = await countOpen();
    await small.close();
    expect(open).toBe(2);
  });

  /** Connections of clients, the one that asks left out. */
  async function countOpen(): Promise<number | undefined> {
    const { rows } = await direct.pool.query<{ open: number }>(
      `select count(*)::int as open from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
    );
    return rows[0]?.open;
  }

  async function fillWith(small: IndexStore): Promise<void> {
    await Promise.all(Array.from({ length: 20 }, async (_, count) => small.isFresh(`tenant-${String(count)}`)));
  }

  it('knows how many connections its server allows, and how many others have open', async () => {
    expect(await store.readConnectionLimits()).toMatchObject({ max: 100, reserved: 3 });
    const others = async (): Promise<number | undefined> => (await store.readConnectionLimits())?.others;
    await eventually(async () => (await others()) === 0);
    const other = await direct.pool.connect();
    await other.query(`set application_name = 'somebody else'`);
    await eventually(async () => (await others()) === 1);
    other.release(true);
    await eventually(async () => (await others()) === 0);
  });

  it.each([
    ['there is no such database', async () => url.replace(/[^/]*$/u, 'nothing'), 'does not exist'],
    [
      'there is no connection left for it',
      async () => {
        const full = await cluster.createDatabase();
        await cluster.asAdmin(`alter database ${full.split('/').at(-1) ?? ''} connection limit 0`);
        return full;
      },
      'too many connections',
    ],
  ])('is not opened when %s, and one line names the setting', async (_case, prepare, cause) => {
    const address = await prepare();
    // A server that does not answer in time refuses nothing: then the index is opened, and used when it answers.
    const refused = await eventually(async () => {
      try {
        await (await open(address)).close();
        return undefined;
      } catch (error) {
        return error;
      }
    });
    expect(refused).toBeInstanceOf(ConfigError);
    const line = /DATABASE_URL: must lead to a database that lets this process in/u;
    expect(refused).toMatchObject({ message: expect.stringMatching(line) });
    expect(refused).toMatchObject({ message: expect.stringContaining(cause) });
  });

  it('shows no row to a query that names no tenant, not even to the owner of the tables', async () => {
    await fill('acme');
    for (const name of indexTableNames) {
      expect((await direct.pool.query(`select * from ${name}`)).rows).toEqual([]);
    }
    const client = await direct.pool.connect();
    await client.query(`begin; select set_config('app.account_id', 'acme', true)`);
    expect((await client.query('select title from sessions')).rows).toEqual([{ title: 'of acme' }]);
    await client.query('commit');
    expect((await client.query('select title from sessions')).rows).toEqual([]);
    client.release();
  });

  it('shows and takes only rows of the tenant that the transaction names', async () => {
    await fill('acme');
    await fill('other');
    const client = await direct.pool.connect();
    await client.query(`begin; select set_config('app.account_id', 'other', true)`);
    expect((await client.query('select title from sessions')).rows).toEqual([{ title: 'of other' }]);
    expect((await client.query(`update sessions set title = 'seized' where account_id = 'acme'`)).rowCount).toBe(0);
    expect((await client.query(`delete from turns where account_id = 'acme'`)).rowCount).toBe(0);
    expect((await client.query('select text from passages')).rows).toEqual([{ text: 'a passage of other' }]);
    expect((await client.query('select account_id from passage_vectors')).rows).toEqual([{ account_id: 'other' }]);
    await expect(client.query(`insert into meta values ('acme', 'built', '1')`)).rejects.toMatchObject({ code: '42501' });
    await client.query('rollback');
    client.release();
    expect((await store.forTenant('acme').listSessions({ limit: 9 })).items[0]?.title).toBe('of acme');
  });

  it('keeps tenants apart by its queries, too, where the role is above the policies, and warns of such a role', async () => {
    await fill('acme');
    const lines: string[] = [];
    const log = createLog({ service: 'test', level: 'silent' });
    log.warn = (line: unknown, text?: unknown) => lines.push(String(text ?? line));
    const above = await openIndex({ databaseUrl: url.replace('concierge@', 'admin@'), dataDir: '/nonexistent', log });
    const other = above.forTenant('other');
    expect((await other.listSessions({ limit: 9 })).items).toEqual([]);
    expect(await other.usage({})).toEqual([]);
    expect(await other.findTurn('t1')).toBeUndefined();
    expect(await other.listSkills()).toEqual([]);
    await above.rebuild('other', new Files());
    await above.drop('other');
    expect((await above.forTenant('acme').listSessions({ limit: 9 })).items.length).toBe(1);
    await above.close();
    expect(lines.join()).toContain('row-level security');
  });

  it('makes its tables once when many processes start at the same time', async () => {
    const fresh = await cluster.createDatabase();
    const stores = await Promise.all([1, 2, 3, 4].map(async () => open(fresh)));
    await Promise.all(stores.map(async (each, number) => each.forTenant('acme').putSession(session(number))));
    expect((await stores[0]?.forTenant('acme').listSessions({ limit: 9 }))?.items.length).toBe(4);
    await Promise.all(stores.map(async (each) => each.close()));
  });

  it('makes its tables again, and fills them, when they were dropped', async () => {
    const files = new Files(session(1));
    const index = store.forTenant('acme', files);
    expect((await index.listSessions({ limit: 9 })).items.length).toBe(1);
    await direct.pool.query(`drop table index_version, ${indexTableNames.join(', ')}`);
    expect((await index.listSessions({ limit: 9 })).items.map(({ id }) => id)).toEqual([sessionId(1)]);
  });

  it('learns from the files what began the sessions that an earlier version listed', async () => {
    const files = new Files(session(1, { origin: 'heartbeat' }), session(2, { origin: 'user' }));
    for (const tenant of ['acme', 'other']) await store.rebuild(tenant, files);
    await direct.pool.query(`${dropLaterColumns} update index_version set version = 2`);

    const later = await open(url);
    for (const tenant of ['acme', 'other']) {
      const { items } = await later.forTenant(tenant, files).listSessions({ limit: 9 });
      expect(items.map(({ id, origin }) => [id, origin])).toEqual([
        [sessionId(2), 'user'],
        [sessionId(1), 'heartbeat'],
      ]);
      expect((await later.rebuild(tenant, files)).sessions).toEqual({ added: 0, changed: 0, removed: 0 });
    }
    // Closed again to a query that names no tenant.
    expect((await direct.pool.query('select * from meta')).rows).toEqual([]);
    await later.close();
  });

  it('refuses tables that a newer version made for itself', async () => {
    await fill('acme');
    await direct.pool.query('update index_version set version = 999, oldest_reader = 999');
    const later = await open(url);
    await expect(later.forTenant('acme').listSessions({ limit: 1 })).rejects.toThrow('newer version');
    await later.close();
  });

  it('goes on with tables of a newer version that name this one as a reader, and leaves their version', async () => {
    const files = new Files(session(1));
    await store.rebuild('acme', files);
    await direct.pool.query(`alter table sessions add column mood text not null default 'none';
      update index_version set version = 999, oldest_reader = ${String(migrations.length)}`);
    const earlier = await open(url);
    await earlier.forTenant('acme', files).putSession(session(2));
    expect((await earlier.forTenant('acme', files).listSessions({ limit: 9 })).items.map(({ id }) => id)).toEqual([
      sessionId(2),
      sessionId(1),
    ]);
    expect((await direct.pool.query('select version, oldest_reader from index_version')).rows).toEqual([
      { version: 999, oldest_reader: migrations.length },
    ]);
    await earlier.close();
  });

  it('does not wait with a step for a table that is in use, so that others go on using it', async () => {
    const files = new Files(session(1));
    await store.rebuild('acme', files);
    await direct.pool.query(`${dropLaterColumns} update index_version set version = 2;
      alter table index_version drop column oldest_reader`);
    const user = await direct.pool.connect();
    await user.query('begin; lock table sessions in access share mode');
    const later = await open(url);
    await expect(later.forTenant('acme', files).listSessions({ limit: 9 })).rejects.toMatchObject({ code: 'overloaded' });
    await user.query('commit');
    user.release();
    expect((await later.forTenant('acme', files).listSessions({ limit: 9 })).items.map(({ id }) => id)).toEqual([sessionId(1)]);
    await later.close();
  });

  it('reports that it cannot be reached while the server is away, and works again when it is back', async () => {
    await fill('acme');
    const index = store.forTenant('acme');
    await cluster.interrupt();
    await expect(index.listSessions({ limit: 9 })).rejects.toMatchObject({ code: 'overloaded' });
    await expect(index.putSession(session(2))).rejects.toMatchObject({ code: 'overloaded' });
    await expect(store.check()).rejects.toMatchObject({ code: 'overloaded' });
    const startedWithout = await open(url);
    await cluster.start();
    await eventually(async () => (await index.listSessions({ limit: 9 })).items.length === 1);
    await startedWithout.forTenant('acme').putSession(session(2));
    expect((await index.listSessions({ limit: 9 })).items.length).toBe(2);
    await startedWithout.close();
  });

  it('reads counts as numbers beyond 32 bits', async () => {
    const models = [
      { model: 'openai/gpt-5', inputTokens: 5_000_000_000, outputTokens: 1, cachedInputTokens: 0, calls: 1, costUsd: 12_500.000000001 },
    ];
    await store.forTenant('acme').putSession(session(1, { turns: [turn('t1', { models }), turn('t2', { models })] }));
    expect((await store.forTenant('acme').usage({}))[0]).toMatchObject({
      inputTokens: 10_000_000_000,
      costUsd: 25_000.000000002,
      turns: 2,
    });
  });
});
