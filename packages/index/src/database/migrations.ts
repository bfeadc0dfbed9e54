import { sql, type ColumnDefinitionBuilder, type Kysely } from 'kysely';
import { firstTableNames, type IndexDialect, type IndexTables, passageTableNames } from './tables.ts';

/**
 * A row is seen and written only by a transaction whose `app.account_id` is the row's; without the setting there are no
 * rows. FORCE binds the table's owner too, which the service usually is. Superusers and roles with BYPASSRLS are above
 * any policy: so every query names its tenant as well, and the store warns about such a role.
 */
async function isolateTenants(db: Kysely<IndexTables>, name: keyof IndexTables): Promise<void> {
  const table = sql.table(name);
  await sql`alter table ${table} enable row level security`.execute(db);
  await sql`alter table ${table} force row level security`.execute(db);
  await sql`create policy tenant on ${table}
    using (account_id = current_setting('app.account_id', true))
    with check (account_id = current_setting('app.account_id', true))`.execute(db);
}

/** What memory is searched through. The databases are given folded terms and take them as they are. */
async function createPassages(db: Kysely<IndexTables>, dialect: IndexDialect): Promise<void> {
  const text = dialect === 'sqlite' ? sql`text` : sql`text collate "C"`;
  const required = (column: ColumnDefinitionBuilder): ColumnDefinitionBuilder => column.notNull();
  await db.schema
    .createTable('passage_sources')
    .addColumn('account_id', text, required)
    .addColumn('kind', text, required)
    .addColumn('owner', text, required)
    .addColumn('ref', text, required)
    .addColumn('stamp', text, required)
    .addPrimaryKeyConstraint('passage_sources_key', ['account_id', 'kind', 'owner', 'ref'])
    .execute();
  await db.schema
    .createTable('passages')
    .addColumn('id', dialect === 'sqlite' ? 'integer' : 'bigserial', (id) => id.primaryKey())
    .addColumn('account_id', text, required)
    .addColumn('kind', text, required)
    .addColumn('owner', text, required)
    .addColumn('ref', text, required)
    .addColumn('hash', text, required)
    .addColumn('nth', 'bigint', required)
    .addColumn('seq', 'bigint', required)
    .addColumn('title', text, required)
    .addColumn('heading', text, required)
    .addColumn('place', 'bigint', required)
    .addColumn('at', 'bigint', required)
    .addColumn('text', text, required)
    .addColumn('terms', text, required)
    .addUniqueConstraint('passages_key', ['account_id', 'kind', 'owner', 'ref', 'hash', 'nth'])
    .execute();
  await db.schema.createIndex('passages_by_hash').on('passages').columns(['account_id', 'hash']).execute();
  await db.schema
    .createTable('passage_vectors')
    .addColumn('account_id', text, required)
    .addColumn('model', text, required)
    .addColumn('hash', text, required)
    .addColumn('vector', dialect === 'sqlite' ? 'blob' : 'bytea', required)
    .addPrimaryKeyConstraint('passage_vectors_key', ['account_id', 'model', 'hash'])
    .execute();
  await (dialect === 'sqlite' ? indexTermsInSqlite(db) : indexTermsInPostgres(db));
}

/**
 * `ascii` parts words at the spaces we put there and touches nothing beyond ASCII; no positions, as the ranking is
 * ours.
 */
async function indexTermsInSqlite(db: Kysely<IndexTables>): Promise<void> {
  await sql`create virtual table passage_terms using fts5(terms, content='', contentless_delete=1, detail=none, tokenize='ascii')`.execute(
    db,
  );
  await sql`create trigger passage_inserted after insert on passages
    begin insert into passage_terms(rowid, terms) values (new.id, new.terms); end`.execute(db);
  await sql`create trigger passage_deleted after delete on passages
    begin delete from passage_terms where rowid = old.id; end`.execute(db);
}

/**
 * Without a GIN index: row-level security keeps `@@` from being asked before whose the row is, and a tenant's rows are
 * found by their key.
 */
async function indexTermsInPostgres(db: Kysely<IndexTables>): Promise<void> {
  await sql`alter table passages add column search tsvector not null
    generated always as (array_to_tsvector(string_to_array(terms, ' '))) stored`.execute(db);
  for (const name of passageTableNames) await isolateTenants(db, name);
}

/**
 * The tables were made by a later version, and this one is not among those that may use them. Deleting the index helps:
 * it is rebuilt.
 */
export class NewerIndexError extends Error {
  override readonly name = 'NewerIndexError';

  constructor(where: string) {
    super(
      `the index in ${where} was written by a newer version of Concierge and cannot be used by this one: upgrade, or delete the index to have it rebuilt`,
    );
  }
}

/** One step of the schema, run once, in a transaction, under the store's lock. */
export type Migration = (db: Kysely<IndexTables>, dialect: IndexDialect) => Promise<void>;

/** Append only; the number of steps that have run is the database's version. */
export const migrations: readonly Migration[] = [
  createTables,
  createPassages,
  addSessionOrigin,
  createPending,
  addSessionDetails,
  createContacts,
];

/**
 * The earliest version whose queries work over these tables: it goes on beside this one, and after a return to it. The
 * tables name it. A step that an earlier version cannot live with raises it to the number of all steps.
 */
export const oldestReader = 4;

/** Of a database, or a file. */
export interface SchemaVersion {
  readonly version: number;
  /** What its tables name; undefined where they name none. */
  readonly oldestReader: number | undefined;
}

/** Whether a later version has made the tables in a way that this one must not use. */
export function isTooNew(found: SchemaVersion): boolean {
  return found.version > migrations.length && (found.oldestReader ?? found.version) > migrations.length;
}

// eslint-disable-next-line max-lines-per-function -- a table of tables
async function createTables(db: Kysely<IndexTables>, dialect: IndexDialect): Promise<void> {
  // Byte order in both databases: the order of ids is part of the cursors.
  const text = dialect === 'sqlite' ? sql`text` : sql`text collate "C"`;
  const required = (column: ColumnDefinitionBuilder): ColumnDefinitionBuilder => column.notNull();
  const table = (name: keyof IndexTables) => db.schema.createTable(name).addColumn('account_id', text, required);
  // Small rows live in their key's tree; turns are large, and are better appended to a heap.
  const clustered = (name: keyof IndexTables) => (dialect === 'sqlite' ? table(name).modifyEnd(sql`without rowid`) : table(name));

  await clustered('sessions')
    .addColumn('id', text, required)
    .addColumn('agent', text, required)
    .addColumn('channel', text, required)
    .addColumn('title', text, required)
    .addColumn('message_count', 'bigint', required)
    .addColumn('revision', 'bigint', required)
    .addColumn('created_at', 'bigint', required)
    .addColumn('updated_at', 'bigint', required)
    .addColumn('generation', 'bigint', required)
    .addPrimaryKeyConstraint('sessions_key', ['account_id', 'id'])
    .execute();
  await db.schema.createIndex('sessions_by_time').on('sessions').columns(['account_id', 'updated_at', 'id']).execute();
  await db.schema.createIndex('sessions_by_agent').on('sessions').columns(['account_id', 'agent', 'updated_at', 'id']).execute();

  await table('turns')
    .addColumn('id', text, required)
    .addColumn('session_id', text, required)
    .addColumn('session_created_at', 'bigint', required)
    .addColumn('agent', text, required)
    .addColumn('channel', text, required)
    .addColumn('status', text, required)
    .addColumn('accepted_at', 'bigint', required)
    .addColumn('revision', 'bigint', required)
    .addColumn('generation', 'bigint', required)
    .addColumn('record', text, required)
    .addPrimaryKeyConstraint('turns_key', ['account_id', 'id'])
    .execute();
  // With the session, so that its turns are found without reading the records.
  await db.schema.createIndex('turns_by_time').on('turns').columns(['account_id', 'accepted_at', 'id', 'session_id']).execute();
  // Most turns are done: to find those in the list costs nothing, and the index of the others stays small.
  await db.schema
    .createIndex('turns_not_done')
    .on('turns')
    .columns(['account_id', 'status', 'accepted_at', 'id'])
    .where('status', '<>', sql.lit('done'))
    .execute();

  await clustered('usage')
    .addColumn('turn_id', text, required)
    .addColumn('session_id', text, required)
    .addColumn('session_created_at', 'bigint', required)
    .addColumn('day', text, required)
    .addColumn('agent', text, required)
    .addColumn('channel', text, required)
    .addColumn('model', text, required)
    .addColumn('calls', 'bigint', required)
    .addColumn('input_tokens', 'bigint', required)
    .addColumn('cached_input_tokens', 'bigint', required)
    .addColumn('output_tokens', 'bigint', required)
    .addColumn('cost_nano', 'bigint')
    .addColumn('generation', 'bigint', required)
    .addPrimaryKeyConstraint('usage_key', ['account_id', 'day', 'turn_id', 'model'])
    .execute();

  await clustered('removals')
    .addColumn('session_id', text, required)
    .addColumn('session_created_at', 'bigint', required)
    .addColumn('generation', 'bigint', required)
    .addPrimaryKeyConstraint('removals_key', ['account_id', 'session_id'])
    .execute();
  await clustered('removed_usage')
    .addColumn('session_id', text, required)
    .addColumn('session_created_at', 'bigint', required)
    .addColumn('day', text, required)
    .addColumn('agent', text, required)
    .addColumn('channel', text, required)
    .addColumn('model', text, required)
    .addColumn('turns', 'bigint', required)
    .addColumn('calls', 'bigint', required)
    .addColumn('input_tokens', 'bigint', required)
    .addColumn('cached_input_tokens', 'bigint', required)
    .addColumn('output_tokens', 'bigint', required)
    .addColumn('cost_nano', 'bigint')
    .addColumn('generation', 'bigint', required)
    .addPrimaryKeyConstraint('removed_usage_key', ['account_id', 'session_id', 'session_created_at', 'day', 'agent', 'channel', 'model'])
    .execute();

  await clustered('skills')
    .addColumn('name', text, required)
    .addColumn('description', text, required)
    .addColumn('trigger', text, required)
    .addColumn('path', text, required)
    .addPrimaryKeyConstraint('skills_key', ['account_id', 'name'])
    .execute();
  await clustered('meta')
    .addColumn('key', text, required)
    .addColumn('value', text, required)
    .addPrimaryKeyConstraint('meta_key', ['account_id', 'key'])
    .execute();

  if (dialect === 'postgres') for (const name of firstTableNames) await isolateTenants(db, name);
}

/** The files contain what began a session: the index is rebuilt from them. */
async function addSessionOrigin(db: Kysely<IndexTables>, dialect: IndexDialect): Promise<void> {
  const text = dialect === 'sqlite' ? sql`text` : sql`text collate "C"`;
  await db.schema
    .alterTable('sessions')
    .addColumn('origin', text, (column) => column.notNull().defaultTo('user'))
    .execute();
  await forgetBuilds(db, dialect);
}

/**
 * What a list shows and is searched by. An earlier version beside this one leaves these columns as they are; the next
 * turn of the session puts them right. Rebuilt from the files, as in `addSessionOrigin`.
 */
async function addSessionDetails(db: Kysely<IndexTables>, dialect: IndexDialect): Promise<void> {
  const text = dialect === 'sqlite' ? sql`text` : sql`text collate "C"`;
  const table = () => db.schema.alterTable('sessions');
  await table().addColumn('sender', text).execute();
  await table().addColumn('last_message', text).execute();
  await table().addColumn('last_from', text).execute();
  await table()
    .addColumn('has_failed', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
  await table()
    .addColumn('words', text, (column) => column.notNull().defaultTo(''))
    .execute();
  await forgetBuilds(db, dialect);
}

/** An earlier version beside this one neither writes nor removes these rows: the rebuild after it has ended does. */
async function createContacts(db: Kysely<IndexTables>, dialect: IndexDialect): Promise<void> {
  const text = dialect === 'sqlite' ? sql`text` : sql`text collate "C"`;
  const required = (column: ColumnDefinitionBuilder): ColumnDefinitionBuilder => column.notNull();
  // A database whose version was set back has one already.
  await db.schema.dropTable('contacts').ifExists().execute();
  await db.schema
    .createTable('contacts')
    .addColumn('account_id', text, required)
    .addColumn('folder', text, required)
    .addColumn('sender', text, required)
    .addColumn('words', text, required)
    .addColumn('generation', 'bigint', required)
    .addPrimaryKeyConstraint('contacts_key', ['account_id', 'folder'])
    .execute();
  if (dialect === 'postgres') await isolateTenants(db, 'contacts');
  await forgetBuilds(db, dialect);
}

/**
 * Every tenant's index is rebuilt when it is read next. The policy would hide the rows of all tenants from a step that
 * works for none of them.
 */
async function forgetBuilds(db: Kysely<IndexTables>, dialect: IndexDialect): Promise<void> {
  if (dialect === 'postgres') await sql`alter table meta no force row level security`.execute(db);
  await db.deleteFrom('meta').where('key', '=', 'built').execute();
  if (dialect === 'postgres') await sql`alter table meta force row level security`.execute(db);
}

/** Rows stay for a second. A file is one tenant's and needs no index; elsewhere it spares the dead rows of all. */
async function createPending(db: Kysely<IndexTables>, dialect: IndexDialect): Promise<void> {
  const text = dialect === 'sqlite' ? sql`text` : sql`text collate "C"`;
  // A database whose version was set back has one already.
  await db.schema.dropTable('pending').ifExists().execute();
  await db.schema
    .createTable('pending')
    .addColumn('seq', dialect === 'sqlite' ? 'integer' : 'bigserial', (seq) => seq.primaryKey())
    .addColumn('account_id', text, (column) => column.notNull())
    .addColumn('turn_ids', text, (column) => column.notNull())
    .addColumn('rows', text, (column) => column.notNull())
    .execute();
  if (dialect === 'sqlite') return;
  await db.schema.createIndex('pending_by_tenant').on('pending').columns(['account_id', 'seq']).execute();
  await isolateTenants(db, 'pending');
}
