import { hasMoreValues, limits } from '@concierge/contract';
import { z } from 'zod';

/**
 * `revive` changes only texts that match this: in JSON, U+0000 and half a pair are escaped, and a decoder gives
 * neither.
 */
const suspicious = /\\u(?:0000|[dD][89a-fA-F])|\d{16}/u;
const decoder = new TextDecoder();

/**
 * The value that the bytes mean, or undefined when they are not JSON, or of more values than any provider sends: each
 * costs a schema a look. Strings lose U+0000 and lone surrogates, which no database takes; whole numbers that a number
 * cannot hold stay as they were written.
 */
export function readJson(body: Uint8Array): unknown {
  try {
    const text = decoder.decode(body);
    // To look at each value takes several times as long as to read them all.
    const value: unknown = suspicious.test(text) ? JSON.parse(text, revive) : JSON.parse(text);
    return hasMoreValues(value, limits.webhookMaxValues) ? undefined : value;
  } catch {
    return undefined;
  }
}

// TypeScript's library does not know the third argument yet.
function revive(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value === 'string') return storable(value);
  const source = context?.source;
  const isTooLarge = typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && /^-?\d+$/u.test(source);
  return isTooLarge ? source : value;
}

/** With the `u` flag only surrogates without their other half are of this category. */
export function storable(text: string): string {
  return text.replaceAll('\u0000', '').replace(/\p{Cs}/gu, '');
}

/** An optional field that does no harm when it is something else than expected. */
export function maybe<Schema extends z.ZodType>(schema: Schema) {
  return schema.optional().catch(undefined);
}

/** Ids come as strings or as numbers. */
export const id = z.union([z.string().min(1), z.number()]).transform(String);

/**
 * Each is read by itself: one that is damaged does not take the others with it. Most bodies have but one of their
 * lists, and a default costs less than a catch.
 */
export const list = z.array(z.unknown()).max(limits.webhookListMax).default([]).catch([]);

/** As a number or in digits. */
export const milliseconds = z.union([z.number(), z.string().regex(/^\d{1,16}$/u)]).transform(Number);

/** From the provider's seconds to our milliseconds. */
export const seconds = milliseconds.transform((count) => count * 1000);
