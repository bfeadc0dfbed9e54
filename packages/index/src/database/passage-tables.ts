import { sql, type ColumnDefinitionBuilder, type Kysely } from 'kysely';
import { isolateTenants } from './row-security.ts';
import { passageTableNames, type IndexDialect, type IndexTables } from './tables.ts';

/** What memory is searched through. The databases are given folded terms and take them as they are. */
export async function createPassages(db: Kysely<IndexTables>, dialect: IndexDialect): Promise<void> {
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
