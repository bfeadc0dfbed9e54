import { z } from 'zod';

/** A map with at most so many names. */
export function limitedRecord<Key extends z.core.$ZodRecordKey, Value extends z.core.SomeType>(
  key: Key,
  value: Value,
  maxProperties: number,
): z.ZodRecord<Key, Value> {
  return z
    .record(key, value)
    .refine((record) => Object.keys(record).length <= maxProperties, `must have at most ${String(maxProperties)} entries`)
    .meta({ maxProperties });
}
