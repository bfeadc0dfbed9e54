import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createLog, isPostgresUnavailable, postgresErrorCode } from '@concierge/runtime';
import { openPostgres, type PostgresConnection } from '@concierge/runtime/postgres';
import { canRunPostgres, eventually, freePort, startPostgres, type TestPostgres } from '@concierge/testing';
import { Kysely, sql } from 'kysely';

const log = createLog({ service: 'test', level: 'silent' });
/** For statements that take no time, on a machine that may stand still. */
const PATIENCE_MS = 60_000;

(canRunPostgres() ? describe : describe.skip)('openPostgres', () => {
  let cluster: TestPostgres;
  let connection: PostgresConnection;
  let db: Kysely<object>;

  beforeAll(async () => {
    cluster = await startPostgres();
  });
  afterAll(async () => cluster.stop());
  beforeEach(async () => {
    connection = openPostgres({ url: cluster.url, log, max: 2, statementTimeoutMs: PATIENCE_MS });
    db = new Kysely({ dialect: connection.dialect });
    // A connection is made within ten seconds, or not at all; a machine that stands still takes longer.
    await eventually(async () => sql`select 1`.execute(db));
  });
  afterEach(async () => connection.close());

  const catchFailure = async (query: Promise<unknown>): Promise<unknown> =>
    query.then(
      () => 'no failure',
      (error: unknown) => error,
    );

  it('reads bigint as a number and leaves the other types alone', async () => {
    const { rows } = await sql`select 5000000000::bigint as big, 1.5::numeric as exact, null::bigint as none, true as yes`.execute(db);
    expect(rows).toEqual([{ big: 5_000_000_000, exact: '1.5', none: null, yes: true }]);
  });

  it('ends a statement that takes too long', async () => {
    const brief = openPostgres({ url: cluster.url, log, statementTimeoutMs: 200 });
    const within = new Kysely<object>({ dialect: brief.dialect });
    // Where this process or the server stood still, the client has given up before the server's error came.
    const failure = await eventually(async () => {
      const found = await catchFailure(sql`select pg_sleep(30)`.execute(within));
      return postgresErrorCode(found) === undefined ? undefined : found;
    });
    expect(postgresErrorCode(failure)).toBe('57014');
    expect(isPostgresUnavailable(failure)).toBe(true);
    await brief.close();
  });

  it('distinguishes a wrong query from a database that is not available', async () => {
    const failure = await catchFailure(sql`select * from nothing`.execute(db));
    expect(postgresErrorCode(failure)).toBe('42P01');
    expect(isPostgresUnavailable(failure)).toBe(false);
    expect(isPostgresUnavailable(new TypeError('a defect of ours'))).toBe(false);
  });

  it('fails when no server listens', async () => {
    const nowhere = openPostgres({ url: `postgres://concierge@127.0.0.1:${String(await freePort())}/concierge`, log });
    const failure = await catchFailure(sql`select 1`.execute(new Kysely({ dialect: nowhere.dialect })));
    expect(postgresErrorCode(failure)).toBeUndefined();
    expect(isPostgresUnavailable(failure)).toBe(true);
    await nowhere.close();
  });

  it('outlives the loss of idle and of busy connections', async () => {
    await eventually(async () => Promise.all([sql`select 1`.execute(db), sql`select 1`.execute(db)]));
    await cluster.asAdmin(`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'concierge'`);
    const failure = await catchFailure(
      db.transaction().execute(async (within) => {
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(within);
        await cluster.asAdmin(`select pg_terminate_backend(${String(rows[0]?.pid)})`);
        await sql`select 1`.execute(within);
      }),
    );
    expect(isPostgresUnavailable(failure)).toBe(true);
    const { rows } = await eventually(async () => sql<{ one: number }>`select 1 as one`.execute(db));
    expect(rows).toEqual([{ one: 1 }]);
  });

  it('can be closed twice', async () => {
    await sql`select 1`.execute(db);
    await connection.close();
    await connection.close();
    expect(connection.pool.ended).toBe(true);
  });
});
