import { AppError, invalidFields, type ErrorCode } from '@concierge/contract';
import type { z } from 'zod';

/** @throws AppError with the first problems and their places; `invalid_request` unless another code is given */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown, code: ErrorCode = 'invalid_request'): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  if (code !== 'invalid_request') throw new AppError(code, undefined, { cause: parsed.error });
  throw new AppError(code, undefined, { errors: invalidFields(parsed.error) });
}
