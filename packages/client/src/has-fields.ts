type Kind<Value> = Value extends string ? 'string' : Value extends number ? 'number' : Value extends boolean ? 'boolean' : 'object';

/** The required fields of a type, each with the `typeof` of its values. */
export type Shape<Type> = { readonly [Name in keyof Type as object extends Pick<Type, Name> ? never : Name]: Kind<Type[Name]> };

/**
 * Looks at the required fields, and at nothing else: a newer service may send more. A schema library would be larger
 * than the client.
 */
export function hasFields<Type>(value: unknown, shape: Shape<Type>): value is Type {
  if (typeof value !== 'object' || value === null) return false;
  const fields = new Map<string, unknown>(Object.entries(value));
  return Object.entries<string>(shape).every(([name, kind]) => typeof fields.get(name) === kind && fields.get(name) !== null);
}

/** Undefined for what is no JSON. */
export function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
