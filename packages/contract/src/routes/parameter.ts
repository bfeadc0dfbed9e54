import { z } from 'zod';
import { limits } from '../limits.ts';

/** A whole number in a query string: digits and nothing else, so that `1e1`, `0x10` and `" 5"` are refused. */
export function integerParameter(range: { readonly min: number; readonly max: number; readonly default: number }): z.ZodType<number> {
  const digits = /^(?:0|[1-9][0-9]{0,15})$/u;
  // The default stands inside: z.toJSONSchema drops the one of a preprocessed schema.
  const schema = z.int().min(range.min).max(range.max).default(range.default);
  return z.preprocess((value) => (typeof value === 'string' && digits.test(value) ? Number(value) : value), schema);
}

/** Page size of every list. */
export const limitParameter = integerParameter({ min: 1, max: limits.sessionsListMax, default: limits.sessionsListDefault });

export const cursorParameter = z
  .string()
  .min(1)
  .max(512)
  .optional()
  .meta({ description: 'Opaque; taken from the `Link` header of the page before.' });

/** A flag in a query string. */
export const flagParameter = z.preprocess(
  (value) => (value === 'true' || value === 'false' ? value === 'true' : value),
  z.boolean().default(false),
);

export const pageHeaders = { Link: 'The next page, `rel="next"`; absent on the last one.' } as const;
