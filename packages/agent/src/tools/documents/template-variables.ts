import { z } from 'zod';

/** A part of a variable's name. Names that objects inherit are refused. */
export const partPattern = /^(?!(?:__proto__|constructor|prototype)$)[\p{L}_][\p{L}\p{N}_-]*$/u;
const LIST_ITEMS_MAX = 1000;
const DATE = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?$/u;

const variableTypes = ['string', 'number', 'boolean', 'date', 'list'] as const;

const Field = z.strictObject({
  name: z
    .string()
    .refine((name) => splitName(name).every((part) => partPattern.test(part)), 'must be words joined by dots, as in "customer.name"'),
  type: z.enum(variableTypes, `must be one of ${variableTypes.join(', ')}`).default('string'),
  required: z.boolean('must be true or false').default(true),
  /** YAML parses dates as dates. */
  default: z.union([z.string(), z.number(), z.boolean(), z.date().transform(formatDay), z.array(z.json())]).optional(),
  description: z.string().optional(),
});

type Declared = z.output<typeof Field> & { readonly fields?: readonly z.output<typeof Field>[] | undefined };

/**
 * What a template's front matter states about one variable. `fields`: what the items of a list hold; without it,
 * anything.
 */
export const TemplateVariable = Field.extend({ fields: z.array(Field).optional() })
  .refine(({ type, fields }) => fields === undefined || type === 'list', 'only a list has fields')
  .refine((variable: Declared) => variable.default === undefined || findProblem(variable, variable.default) === undefined, {
    path: ['default'],
    error: 'is not of the type of the variable',
  });
export type TemplateVariable = z.output<typeof TemplateVariable>;

/** Values by name, without anything inherited. */
export interface Values {
  [name: string]: unknown;
}

export type CheckedValues = { readonly values: Values } | { readonly problems: readonly string[] };

/** The values that a template gets: checked against what it declares, defaults filled in. All problems at once. */
export function checkVariables(declared: readonly Declared[], given: Readonly<Record<string, unknown>>): CheckedValues {
  const problems: string[] = [];
  const leaves = listLeaves(given, new Set(declared.map(({ name }) => name)));
  const values = emptyValues();
  for (const variable of declared) {
    const value = leaves.get(variable.name) ?? variable.default;
    leaves.delete(variable.name);
    if (value === undefined || value === null) {
      if (variable.required) problems.push(`${variable.name} is missing: ${describeVariable(variable)}`);
    } else {
      const problem = findProblem(variable, value);
      if (problem === undefined) setValue(values, splitName(variable.name), prepared(variable, value));
      else problems.push(`${variable.name} ${problem}`);
    }
  }
  for (const name of leaves.keys()) problems.push(`${name} is unknown`);
  return problems.length === 0 ? { values } : { problems };
}

/** As in `customer.name (string): Who gets the offer`. */
export function describeVariable({ name, type, required, default: fallback, description, fields }: Declared): string {
  const facts = [
    type,
    ...(required && fallback === undefined ? [] : ['optional']),
    ...(fallback === undefined ? [] : [`default ${JSON.stringify(fallback)}`]),
  ];
  const items = fields === undefined ? '' : ` of {${fields.map((field) => describeVariable(field)).join('; ')}}`;
  return `${name} (${facts.join(', ')}${items})${description === undefined ? '' : `: ${description}`}`;
}

export function emptyValues(): Values {
  const values: Values = Object.assign(Object.create(null));
  return values;
}

function splitName(name: string): string[] {
  return name.split('.');
}

/** Given values by dotted name: an object whose inside is declared is entered, everything else is a value. */
function listLeaves(given: Readonly<Record<string, unknown>>, declared: ReadonlySet<string>, prefix = ''): Map<string, unknown> {
  const leaves = new Map<string, unknown>();
  for (const [key, value] of Object.entries(given)) {
    const name = prefix + key;
    const hasInside = [...declared].some((other) => other.startsWith(`${name}.`));
    if (hasInside && !declared.has(name) && isRecord(value))
      for (const [inner, leaf] of listLeaves(value, declared, `${name}.`)) leaves.set(inner, leaf);
    else leaves.set(name, value);
  }
  return leaves;
}

function findProblem(variable: Declared, value: unknown): string | undefined {
  switch (variable.type) {
    case 'string':
      return typeof value === 'string' ? undefined : wrongType('text', value);
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? undefined : wrongType('a number, without quotes', value);
    case 'boolean':
      return typeof value === 'boolean' ? undefined : wrongType('true or false, without quotes', value);
    case 'date':
      return isDate(value) ? undefined : wrongType('a date as in "2026-03-31"', value);
    case 'list':
      return Array.isArray(value) ? listProblem(variable, value) : wrongType('a list', value);
  }
}

function listProblem({ fields }: Declared, items: readonly unknown[]): string | undefined {
  if (items.length > LIST_ITEMS_MAX) return `has ${String(items.length)} items; at most ${String(LIST_ITEMS_MAX)} fit`;
  if (fields === undefined) return undefined;
  const problems = items.flatMap((item, index) => {
    if (!isRecord(item)) return [`item ${String(index + 1)} must be an object with ${fields.map(({ name }) => name).join(', ')}`];
    const checked = checkVariables(fields, item);
    return 'problems' in checked ? checked.problems.map((problem) => `item ${String(index + 1)}: ${problem}`) : [];
  });
  return problems.length === 0 ? undefined : `has bad items: ${problems.join('; ')}`;
}

function wrongType(wanted: string, value: unknown): string {
  return `must be ${wanted}, not ${Array.isArray(value) ? 'a list' : value === null ? 'null' : `a ${typeof value}`}`;
}

function isDate(value: unknown): boolean {
  if (typeof value !== 'string' || !DATE.test(value)) return false;
  // JavaScript moves a day that the month does not have into the next month.
  const day = value.slice(0, 'YYYY-MM-DD'.length);
  return !Number.isNaN(Date.parse(value)) && formatDay(new Date(`${day}T00:00:00Z`)) === day;
}

function prepared({ fields }: Declared, value: unknown): unknown {
  if (!Array.isArray(value) || fields === undefined) return withoutPrototypes(value);
  const items = value.map((item: unknown) => {
    const checked = checkVariables(fields, isRecord(item) ? item : {});
    return 'values' in checked ? checked.values : emptyValues();
  });
  return bare(items);
}

/** Only given values can be looked up in the result. */
function withoutPrototypes(value: unknown): unknown {
  if (Array.isArray(value)) return bare(value.map(withoutPrototypes));
  if (!isRecord(value)) return value;
  const copy = emptyValues();
  for (const [key, inner] of Object.entries(value)) copy[key] = withoutPrototypes(inner);
  return copy;
}

function bare(items: unknown[]): unknown[] {
  Object.setPrototypeOf(items, null);
  return items;
}

function setValue(values: Values, parts: readonly string[], value: unknown): void {
  const [first = '', ...rest] = parts;
  if (rest.length === 0) {
    values[first] = value;
    return;
  }
  const known = values[first];
  const inner: Values = isRecord(known) ? known : emptyValues();
  values[first] = inner;
  setValue(inner, rest, value);
}

function isRecord(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function formatDay(date: Date): string {
  return date.toISOString().slice(0, 'YYYY-MM-DD'.length);
}
