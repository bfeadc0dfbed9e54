import { z } from 'zod';

/** Lists of names in which a reader can do with one that it does not know. */
const openLists = new WeakSet<z.ZodType>();
const storedSchemas = new WeakMap<z.ZodType, z.ZodType>();

/** Marks a list of names that only inform: what is stored with a name of a later version is read, and keeps it. */
export function openList<Schema extends z.ZodType>(schema: Schema): Schema {
  openLists.add(schema);
  return schema;
}

/**
 * The schema by which stored data is read: fields that it does not know, of a later version, are kept at any depth
 * (docs/decisions/0034-versions-side-by-side.md). The type does not name them: spread a record to keep them, and pick
 * the fields of what a client is shown.
 */
export function toStoredSchema<Schema extends z.ZodType>(schema: Schema): Schema;
export function toStoredSchema(schema: z.ZodType): z.ZodType {
  const known = storedSchemas.get(schema);
  if (known !== undefined) return known;
  const stored = openLists.has(schema) ? z.string() : loosen(schema);
  storedSchemas.set(schema, stored);
  return stored;
}

function loosen(schema: z.ZodType): z.ZodType {
  const parts = Object.entries<unknown>({ ...schema.def }).map(([name, part]) => [name, name === 'checks' ? part : loosenPart(part)]);
  const catchall = schema.def.type === 'object' ? { catchall: z.unknown() } : {};
  return schema.clone({ ...schema.def, ...Object.fromEntries(parts), ...catchall });
}

/** A schema, a list of schemas or a shape; all else stays as it is. */
function loosenPart(part: unknown): unknown {
  if (part instanceof z.ZodType) return toStoredSchema(part);
  if (Array.isArray(part)) return part.map((one: unknown) => loosenPart(one));
  if (typeof part !== 'object' || part === null || Object.getPrototypeOf(part) !== Object.prototype) return part;
  return Object.fromEntries(Object.entries<unknown>({ ...part }).map(([name, one]) => [name, loosenPart(one)]));
}

/**
 * Whether data was written by a later version: it states one, or is wrong in nothing but names that this version does
 * not know. The issues must have their inputs (`reportInput`).
 */
export function isOfLaterVersion({ issues }: Pick<z.ZodError, 'issues'>): boolean {
  return issues.some((issue) => isLaterNumber(issue)) || issues.every((issue) => isUnknownName(issue));
}

function isLaterNumber(issue: z.core.$ZodIssue): boolean {
  if (issue.code !== 'invalid_value' || issue.path.join('.') !== 'version' || typeof issue.input !== 'number') return false;
  return issue.input > Math.max(...issue.values.map(Number));
}

function isUnknownName(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'invalid_value') return typeof issue.input === 'string';
  if (issue.code !== 'invalid_union') return false;
  // Without errors: no member of the union has the name by which they are distinguished.
  if (issue.errors.length > 0) return issue.errors.some((errors) => errors.every((one) => isUnknownName(one)));
  const name =
    typeof issue.input === 'object' && issue.input !== null && Object.getOwnPropertyDescriptor(issue.input, issue.path.at(-1) ?? '');
  return typeof name === 'object' && typeof name.value === 'string';
}
