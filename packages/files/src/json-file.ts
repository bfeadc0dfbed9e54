import { readFile } from 'node:fs/promises';
import { invalidFieldsText } from '@concierge/contract';
import type { z } from 'zod';
import { quickReadText } from './stat-policy.ts';
import { isSystemError } from './system-error.ts';

/** What a file turned out to be. `broken` carries the reason for the log, not for a client. */
export type Parsed<T> = { readonly status: 'ok'; readonly value: T } | { readonly status: 'broken'; readonly reason: string };

/** JSON of ours, read through its schema. */
export function parseJson<S extends z.ZodType>(schema: S, text: string): Parsed<z.output<S>> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return { status: 'broken', reason: error instanceof Error ? error.message : 'is not JSON' };
  }
  const parsed = schema.safeParse(json);
  return parsed.success ? { status: 'ok', value: parsed.data } : { status: 'broken', reason: invalidFieldsText(parsed.error) };
}

/** The text of a private file of ours; undefined when there is none. Not for folders a tenant's tools can write to. */
export async function readIfThere(path: string): Promise<string | undefined> {
  return unlessMissing(readFile(path, 'utf8'));
}

/** The same, of a small file that was written a moment ago. */
export async function readFreshIfThere(path: string): Promise<string | undefined> {
  return unlessMissing(quickReadText(path));
}

async function unlessMissing(reading: Promise<string>): Promise<string | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** Lines that parse; torn and blank ones are skipped (see `appendLines`). */
export function parseLines<S extends z.ZodType>(schema: S, text: string): z.output<S>[] {
  const values: z.output<S>[] = [];
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const parsed = parseJson(schema, line);
    if (parsed.status === 'ok') values.push(parsed.value);
  }
  return values;
}
