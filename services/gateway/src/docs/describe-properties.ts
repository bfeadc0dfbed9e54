import type { createDocument } from 'zod-openapi';
import { conversationTexts } from './texts/conversation-texts.ts';
import { openAiTexts } from './texts/openai-texts.ts';
import { operationTexts, parameterTexts } from './texts/operation-texts.ts';
import { tenantTexts } from './texts/tenant-texts.ts';

type OpenApiDocument = ReturnType<typeof createDocument>;

const properties = new Map<string, string>(Object.entries({ ...openAiTexts, ...operationTexts, ...tenantTexts, ...conversationTexts }));
const parameters = new Map<string, string>(Object.entries(parameterTexts));

/** Where a property stands: the schema or operation that it is in, and the property that holds it. */
interface Place {
  readonly owner: string;
  readonly parent: string;
}

/**
 * Says what each property and parameter means where the schema itself does not, and what stands in for a property that
 * a request leaves out. Changes the document in place.
 */
export function describeProperties(document: OpenApiDocument): OpenApiDocument {
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) describe(schema, { owner: name, parent: name });
  for (const path of Object.values(document.paths ?? {})) {
    for (const operation of Object.entries(path).map(([, value]): unknown => value)) {
      if (isObject(operation)) describe(operation, { owner: String(operation['operationId']), parent: '' });
    }
  }
  return document;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function describe(node: unknown, place: Place): void {
  if (Array.isArray(node)) {
    for (const item of node) describe(item, place);
    return;
  }
  if (!isObject(node)) return;
  if (isParameter(node)) node['description'] ??= findText(parameters, node.name, place);
  const own = node['properties'];
  if (isObject(own)) {
    describeEach(own, place);
    sayDefaults(own, Array.isArray(node['required']) ? node['required'] : []);
  }
  for (const [key, value] of Object.entries(node)) if (key !== 'properties' && !key.startsWith('example')) describe(value, place);
}

function describeEach(own: Record<string, unknown>, place: Place): void {
  for (const [name, schema] of Object.entries(own)) {
    if (!isObject(schema)) continue;
    // A reference may have a description of its own beside it (JSON Schema 2020-12).
    const text = findText(properties, name, place);
    if (schema['description'] === undefined && text !== undefined) schema['description'] = text;
    describe(schema, { ...place, parent: name });
  }
}

/**
 * In words, for what may be left out: makers of client types take a property with a `default` for one that is always
 * there, and would have every request send it.
 */
function sayDefaults(own: Record<string, unknown>, required: readonly unknown[]): void {
  for (const [name, schema] of Object.entries(own)) {
    if (!isObject(schema) || !('default' in schema) || required.includes(name)) continue;
    const { default: value, description } = schema;
    delete schema['default'];
    schema['description'] = [description, `Default: ${JSON.stringify(value)}.`].filter((text) => typeof text === 'string').join(' ');
  }
}

function isParameter(node: Record<string, unknown>): node is Record<string, unknown> & { readonly name: string } {
  return typeof node['name'] === 'string' && ['path', 'query', 'header'].includes(String(node['in']));
}

function findText(texts: ReadonlyMap<string, string>, name: string, { owner, parent }: Place): string | undefined {
  return texts.get(`${owner}.${name}`) ?? texts.get(`${parent}.${name}`) ?? texts.get(name);
}
