import { AppError } from '@concierge/contract';
import { z } from 'zod';

/** Where a page ends: the time and id of its last row. */
export interface Position {
  readonly atMs: number;
  readonly id: string;
}

const parts = z.tuple([z.enum(['sessions', 'turns', 'deliveries']), z.int(), z.string().regex(/^[\x21-\x7e]{1,255}$/u)]);
type List = z.infer<typeof parts>[0];

export function encodeCursor(list: List, position: Position): string {
  return Buffer.from(JSON.stringify([list, position.atMs, position.id])).toString('base64url');
}

/** @throws AppError invalid_request for anything that `encodeCursor` did not write for this list */
export function decodeCursor(list: List, cursor: string): Position {
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
