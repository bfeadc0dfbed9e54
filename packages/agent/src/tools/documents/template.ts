import { FrontMatterError, parseFrontMatter } from '@concierge/tenant';
import Mustache from 'mustache';
import { z } from 'zod';
import { checkVariables, describeVariable, partPattern, TemplateVariable, type Values } from './template-variables.ts';

const RESULT_MAX_CHARACTERS = 48 * 1024;
/** The most tags that one rendering may run, lists counted by their items: nested lists multiply. */
const TAGS_MAX = 50_000;
const NESTING_MAX = 8;
const NOT_TEXT = 'The template puts a list or an object where a text should be. Use {{#name}}…{{/name}} for it.';

const FrontMatter = z.looseObject({ description: z.string().optional(), variables: z.array(TemplateVariable).default([]) });

/** The template or the values cannot be used; the message explains why and may be shown to the tenant. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

type Tag =
  | { readonly kind: 'text'; readonly characters: number }
  | { readonly kind: 'value'; readonly name: string }
  | { readonly kind: 'section' | 'inverted'; readonly name: string; readonly inner: readonly Tag[] };

/**
 * A text with `{{ name }}` in it, `{{#name}}…{{/name}}` for lists and conditions, `{{^name}}…{{/name}}` for what stands
 * there without, and nothing else: a template can call nothing, include nothing and read nothing but its variables.
 */
export class Template {
  readonly description: string;
  readonly variables: readonly TemplateVariable[];
  readonly #body: string;
  readonly #tags: readonly Tag[];
  readonly #escape: (value: unknown) => string;

  /** `path` decides what is escaped: HTML is, Markdown and plain text are not. @throws TemplateError */
  constructor(path: string, text: string) {
    const { data, body } = readFrontMatter(text);
    this.description = data.description ?? '';
    this.variables = data.variables;
    this.#body = body;
    const isHtml = /\.html?$/iu.test(path);
    this.#escape = isHtml ? (value) => Mustache.escape(printed(value)) : printed;
    this.#tags = parseTags(body, isHtml);
    this.#assertDeclared(this.#tags, new Set(this.variables.map(({ name }) => name)));
  }

  /** @throws TemplateError that names every unknown, missing and wrong variable at once */
  render(given: Readonly<Record<string, unknown>>): string {
    const checked = checkVariables(this.variables, given);
    if ('problems' in checked) throw new TemplateError(`${checked.problems.map((problem) => `- ${problem}`).join('\n')}\n${this.help()}`);
    const sizes = new Map<string, number>();
    measureLists(checked.values, sizes);
    if (tagsIn(this.#tags, sizes) > TAGS_MAX) throw new TemplateError('The lists are too long for this template. Render it in parts.');
    const result = this.#write(checked.values);
    if (result.length > RESULT_MAX_CHARACTERS)
      throw new TemplateError(
        `The result has ${String(result.length)} characters; at most ${String(RESULT_MAX_CHARACTERS)} fit. Render it in parts.`,
      );
    return result;
  }

  /** Describes the variables that the template takes, for an error message. */
  help(): string {
    if (this.variables.length === 0) return 'The template takes no variables.';
    return `The template takes:\n${this.variables.map((variable) => `- ${describeVariable(variable)}`).join('\n')}`;
  }

  #write(values: Values): string {
    try {
      return new Mustache.Writer().render(this.#body, values, undefined, { escape: this.#escape });
    } catch (error) {
      if (error instanceof TemplateError) throw error;
      // The only failure left is a list item that is not text.
      throw new TemplateError(NOT_TEXT, { cause: error });
    }
  }

  /** A misspelt name would leave an unnoticed hole. Inside a list it may be a field of the items. */
  #assertDeclared(tags: readonly Tag[], known: ReadonlySet<string>): void {
    for (const tag of tags) {
      if (tag.kind === 'text') continue;
      if (!known.has(tag.name) && tag.name !== '.')
        throw new TemplateError(
          `The template uses {{ ${tag.name} }}, which its front matter does not declare. Add it to \`variables\` there.`,
        );
      if (tag.kind !== 'value') this.#assertInner(tag.name, tag.inner, known);
      else if (this.variables.some(({ name, type }) => name === tag.name && type === 'list')) throw new TemplateError(NOT_TEXT);
    }
  }

  #assertInner(name: string, inner: readonly Tag[], known: ReadonlySet<string>): void {
    const variable = this.variables.find((candidate) => candidate.name === name);
    if (variable?.type === 'list' && variable.fields === undefined) {
      assertPlainNames(inner, known);
      return;
    }
    this.#assertDeclared(inner, new Set([...known, ...(variable?.fields ?? []).map((field) => field.name)]));
  }
}

/** Items without declared fields may have any fields, but only their own. */
function assertPlainNames(tags: readonly Tag[], known: ReadonlySet<string>): void {
  for (const tag of tags) {
    if (tag.kind === 'text') continue;
    if (tag.name !== '.' && !known.has(tag.name) && !partPattern.test(tag.name))
      throw new TemplateError(`The template uses {{ ${tag.name} }} inside a list. Declare what the items hold by \`fields\` of the list.`);
    if (tag.kind !== 'value') assertPlainNames(tag.inner, known);
  }
}

function printed(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new TemplateError(NOT_TEXT);
}

function readFrontMatter(text: string): { data: z.output<typeof FrontMatter>; body: string } {
  try {
    const { data, body } = parseFrontMatter(text);
    const parsed = FrontMatter.safeParse(data ?? {});
    if (parsed.success) return { data: parsed.data, body };
    const problems = parsed.error.issues.map(({ path, message }) => `- ${path.map(String).join('.')}: ${message}`);
    throw new TemplateError(`The front matter of the template cannot be used:\n${problems.join('\n')}`);
  } catch (error) {
    if (error instanceof FrontMatterError) throw new TemplateError(`The template cannot be used: ${error.message}.`);
    throw error;
  }
}

function parseTags(body: string, isHtml: boolean): Tag[] {
  let tokens: unknown;
  try {
    tokens = new Mustache.Writer().parse(body);
  } catch (error) {
    throw new TemplateError(`The template cannot be used: ${error instanceof Error ? error.message : 'it cannot be read'}.`);
  }
  return Tokens.parse(tokens).flatMap((token) => readTag(token, isHtml, 1));
}

/** As the library gives them: sign, name or text, where it begins and ends, and for sections what is inside. */
const Tokens = z.array(z.tuple([z.string(), z.string()]).rest(z.unknown()));
type Token = z.output<typeof Tokens>[number];

function readTag([sign, name, , , inner]: Token, isHtml: boolean, depth: number): Tag[] {
  if (depth > NESTING_MAX) throw new TemplateError(`The template nests sections deeper than ${String(NESTING_MAX)} levels.`);
  switch (sign) {
    case 'text':
      return [{ kind: 'text', characters: name.length }];
    case '!':
      return [];
    case 'name':
      return [{ kind: 'value', name }];
    case '&':
      // As in Markdown and plain text without it; in HTML it would let a value write the page.
      if (isHtml) throw new TemplateError(`The template puts {{ ${name} }} into HTML as it is. Use two braces: values are escaped there.`);
      return [{ kind: 'value', name }];
    case '#':
    case '^': {
      const tags = Tokens.parse(inner).flatMap((token) => readTag(token, isHtml, depth + 1));
      return [{ kind: sign === '#' ? 'section' : 'inverted', name, inner: tags }];
    }
  }
  throw new TemplateError(
    `The template uses {{${sign}${name}}}. Templates know {{ name }}, {{#name}}, {{^name}}, {{/name}} and {{! comments }}.`,
  );
}

/** The longest list under each name, wherever it is. */
function measureLists(value: unknown, sizes: Map<string, number>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (Array.isArray(inner)) sizes.set(key, Math.max(inner.length, sizes.get(key) ?? 0));
    measureLists(inner, sizes);
  }
}

function tagsIn(tags: readonly Tag[], sizes: ReadonlyMap<string, number>): number {
  return tags.reduce((sum, tag) => sum + countTags(tag, sizes), 0);
}

function countTags(tag: Tag, sizes: ReadonlyMap<string, number>): number {
  if (tag.kind === 'text' || tag.kind === 'value') return 1;
  const times = tag.kind === 'inverted' ? 1 : (sizes.get(tag.name.split('.').at(-1) ?? tag.name) ?? 1);
  return 1 + Math.max(1, times) * tagsIn(tag.inner, sizes);
}
