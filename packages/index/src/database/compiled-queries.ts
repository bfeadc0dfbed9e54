import { CompiledQuery } from 'kysely';

/**
 * The queries of every turn, compiled once per shape: to build one again costs kysely more than it costs SQLite to run
 * it. One for each backend, as the two databases' SQL differs.
 */
export class CompiledQueries {
  readonly #sql = new Map<string, string>();

  /** `shape` names the query and whatever changes its text; `parameters` are in the order of the text. */
  query<Row>(shape: string, parameters: readonly unknown[], compile: () => CompiledQuery<Row>): CompiledQuery<Row> {
    let text = this.#sql.get(shape);
    if (text === undefined) {
      const compiled = compile();
      if (compiled.parameters.length !== parameters.length)
        throw new TypeError(`${shape} takes ${String(compiled.parameters.length)} parameters`);
      text = compiled.sql;
      this.#sql.set(shape, text);
    }
    return CompiledQuery.raw(text, [...parameters]);
  }

  /**
   * The statements that insert all rows. Every row names its columns in the same order, which is then the order of the
   * parameters.
   */
  *inserts<Row extends object, Returned>(
    name: string,
    rows: readonly Row[],
    build: (rows: Row[]) => { compile: () => CompiledQuery<Returned> },
  ): Iterable<CompiledQuery<Returned>> {
    for (const piece of pieces(rows)) {
      const parameters = piece.flatMap((row): unknown[] => Object.values(row));
      yield this.query(`${name} ${String(piece.length)}`, parameters, () => build(piece).compile());
    }
  }
}

const ROWS_MAX = 32;

/** In pieces of 32, 16, 8, 4, 2 and 1: any number of rows with six shapes of a query. */
export function* pieces<Row>(rows: readonly Row[]): Iterable<Row[]> {
  let start = 0;
  for (let size = ROWS_MAX; size >= 1; size /= 2) {
    for (; rows.length - start >= size; start += size) yield rows.slice(start, start + size);
  }
}
