import type { JsonObject } from '@concierge/contract';
import { z } from 'zod';

type Kind = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';

const JsonSchema = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  description: z.string().optional(),
  enum: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
  default: z.unknown().optional(),
  items: z.unknown().optional(),
  get anyOf() {
    return z.array(JsonSchema).optional();
  },
  get oneOf() {
    return z.array(JsonSchema).optional();
  },
});
type JsonSchema = z.infer<typeof JsonSchema>;

/** One argument of a tool, as far as a command line needs to know it. */
export interface Argument {
  readonly name: string;
  readonly isRequired: boolean;
  readonly description: string;
  /** What may be given; empty: anything. */
  readonly kinds: ReadonlySet<Kind>;
  /** The kinds of an array's elements. */
  readonly elementKinds: ReadonlySet<Kind>;
  readonly choices: readonly string[];
  readonly defaultValue: string | undefined;
}

const Parameters = z.looseObject({
  properties: z.record(z.string(), z.unknown()).default({}),
  required: z.array(z.string()).default([]),
});

const known = new Set<string>(['string', 'integer', 'number', 'boolean', 'array', 'object']);

/** The arguments that a tool's JSON Schema describes. A part of it that is not understood here allows anything. */
export function argumentsOf(parameters: JsonObject): Argument[] {
  const { properties, required } = Parameters.parse(parameters);
  return Object.entries(properties).map(([name, property]): Argument => {
    const schema = JsonSchema.safeParse(property).data ?? {};
    return {
      name,
      isRequired: required.includes(name),
      description: schema.description ?? '',
      kinds: kindsOf(schema),
      elementKinds: kindsOf(JsonSchema.safeParse(schema.items).data),
      choices: choicesOf(schema),
      defaultValue: schema.default === undefined ? undefined : JSON.stringify(schema.default),
    };
  });
}

function kindsOf(schema: JsonSchema | undefined): ReadonlySet<Kind> {
  if (schema === undefined) return new Set();
  const own = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  const values = schema.const === undefined ? (schema.enum ?? []) : [schema.const];
  const named = [...own, ...values.map((value) => typeof value)].filter((kind): kind is Kind => known.has(kind));
  const others = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((one) => [...kindsOf(one)]);
  return new Set([...named, ...others]);
}

function choicesOf(schema: JsonSchema): string[] {
  const own = schema.const === undefined ? (schema.enum ?? []) : [schema.const];
  const others = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((one) => choicesOf(one));
  return [...own.filter((value) => typeof value === 'string'), ...others];
}
