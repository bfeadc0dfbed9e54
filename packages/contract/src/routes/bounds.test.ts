import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import type { Route } from './route.ts';
import { routes } from './routes.ts';

/** As much of JSON Schema as a bound needs. */
interface Node {
  readonly type?: string | readonly string[];
  readonly enum?: unknown;
  readonly const?: unknown;
  readonly format?: string;
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly propertyNames?: unknown;
}

/** Without what is escaped or in a class, nothing in it may repeat without end. */
function isBoundedPattern(pattern: string): boolean {
  const bare = pattern.replaceAll(/\\./gu, 'x').replaceAll(/\[[^\]]*\]/gu, 'x');
  return bare.startsWith('^') && bare.endsWith('$') && !/[*+]|\{\d*,\}/u.test(bare);
}

function isBounded(node: Node): boolean {
  if (node.enum !== undefined || node.const !== undefined) return true;
  const types = [node.type ?? []].flat();
  if (types.includes('string') && node.maxLength === undefined && !isBoundedPattern(node.pattern ?? '')) return false;
  if (types.includes('array') && node.maxItems === undefined) return false;
  return !types.includes('object') || node.propertyNames === undefined || node.maxProperties !== undefined;
}

/** Places in a JSON Schema that take a string, an array or a map of any size. */
function unboundedIn(node: unknown, at: string): string[] {
  if (typeof node !== 'object' || node === null) return [];
  if (Array.isArray(node)) return node.flatMap((item, index) => unboundedIn(item, `${at}/${String(index)}`));
  const here = isBounded(node) ? [] : [at];
  // Names of a map are bounded by their own schema.
  return [...here, ...Object.entries(node).flatMap(([name, item]) => unboundedIn(item, `${at}/${name}`))];
}

function unbounded(name: string, schema: z.ZodType | undefined): string[] {
  if (schema === undefined) return [];
  return unboundedIn(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), name);
}

function listRequestSchemas({ params, query, headers, body }: Route): Record<string, z.ZodType | undefined> {
  return { params, query, headers, body: body?.kind === 'json' ? body.schema : undefined };
}

describe('the schemas of requests', () => {
  it.each(Object.values<Route>(routes).map((route) => [route.id, route] as const))(
    'of %s bound every string, array and map',
    (_id, route) => {
      const found = Object.entries(listRequestSchemas(route)).flatMap(([name, schema]) => unbounded(name, schema));
      expect(found).toEqual([]);
    },
  );

  it.each<[string, z.ZodType]>([
    ['a string', z.object({ text: z.string() })],
    ['a string whose pattern repeats without end', z.object({ text: z.string().regex(/^a+$/u) })],
    ['a time with any number of digits', z.object({ at: z.iso.datetime() })],
    ['an array', z.object({ list: z.array(z.boolean()).optional() })],
    ['a map', z.object({ map: z.union([z.null(), z.record(z.string().max(1), z.boolean())]) })],
  ])('would not pass with %s that has no bound', (_name, schema) => {
    expect(unbounded('body', schema)).toHaveLength(1);
  });
});
