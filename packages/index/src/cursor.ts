import { AppError } from '@concierge/contract';
import { z } from 'zod';

/** Where a page ends: the time and id of its last row. */
export interface Position {
  readonly atMs: number;
  readonly id: string;
}

const parts = z.tuple([z.enum(['sessions', 'turns', 'deliveries', 'contacts']), z.int(), z.string().regex(/^[\x21-\x7e]{1,255}$/u)]);
type List = z.infer<typeof parts>[0];

/** A page, and where the next one begins; null when nothing follows. */
export interface Page<Item> {
  readonly items: Item[];
  /** Opaque. */
  readonly nextCursor: string | null;
}

/** The pages of one list, in files or in the index: the newest item first, then by id, descending. */
export class CursorPages<Item> {
  readonly #list: List;
  readonly #findPosition: (item: Item) => Position;

  constructor(list: List, findPosition: (item: Item) => Position) {
    this.#list = list;
    this.#findPosition = findPosition;
  }

  /** @throws AppError invalid_request for a cursor of another list, or of none */
  readCursor(cursor: string | undefined): Position | null {
    return cursor === undefined ? null : decodeCursor(this.#list, cursor);
  }

  /** Whether the item belongs to the page after this position, or to a later one. */
  isBehind(item: Item, after: Position | null): boolean {
    if (after === null) return true;
    const { atMs, id } = this.#findPosition(item);
    return atMs < after.atMs || (atMs === after.atMs && id < after.id);
  }

  /** `hasMore`: items beyond those given follow. */
  cutPage<Row extends Item>(
    items: readonly Row[],
    { limit, hasMore = false }: { readonly limit: number; readonly hasMore?: boolean },
  ): Page<Row> {
    const page = items
      .map((item) => ({ item, at: this.#findPosition(item) }))
      .toSorted((left, right) => right.at.atMs - left.at.atMs || (left.at.id < right.at.id ? 1 : -1))
      .slice(0, limit);
    const last = hasMore || items.length > limit ? page.at(-1) : undefined;
    return { items: page.map(({ item }) => item), nextCursor: last === undefined ? null : encodeCursor(this.#list, last.at) };
  }
}

function encodeCursor(list: List, position: Position): string {
  return Buffer.from(JSON.stringify([list, position.atMs, position.id])).toString('base64url');
}

/** @throws AppError invalid_request for anything that `encodeCursor` did not write for this list */
function decodeCursor(list: List, cursor: string): Position {
  const invalid = (cause?: unknown) =>
    new AppError('invalid_request', 'The cursor is not valid', {
      cause,
      errors: [{ path: 'cursor', message: 'is not a cursor of this list' }],
    });
  let decoded: unknown;
  try {
    decoded = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch (error) {
    throw invalid(error);
  }
  const parsed = parts.safeParse(decoded);
  if (!parsed.success || parsed.data[0] !== list) throw invalid();
  const position = { atMs: parsed.data[1], id: parsed.data[2] };
  if (encodeCursor(list, position) !== cursor) throw invalid();
  return position;
}
