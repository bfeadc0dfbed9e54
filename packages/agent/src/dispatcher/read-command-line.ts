import { JsonObject } from '@concierge/contract';
import type { ModelTool } from '@concierge/model';
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
interface Argument {
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
export function listArguments(parameters: JsonObject): Argument[] {
  const { properties, required } = Parameters.parse(parameters);
  return Object.entries(properties).map(([name, property]): Argument => {
    const schema = JsonSchema.safeParse(property).data ?? {};
    return {
      name,
      isRequired: required.includes(name),
      description: schema.description ?? '',
      kinds: listKinds(schema),
      elementKinds: listKinds(JsonSchema.safeParse(schema.items).data),
      choices: listChoices(schema),
      defaultValue: schema.default === undefined ? undefined : JSON.stringify(schema.default),
    };
  });
}

function listKinds(schema: JsonSchema | undefined): ReadonlySet<Kind> {
  if (schema === undefined) return new Set();
  const own = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  const values = schema.const === undefined ? (schema.enum ?? []) : [schema.const];
  const named = [...own, ...values.map((value) => typeof value)].filter((kind): kind is Kind => known.has(kind));
  const others = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((one) => [...listKinds(one)]);
  return new Set([...named, ...others]);
}

function listChoices(schema: JsonSchema): string[] {
  const own = schema.const === undefined ? (schema.enum ?? []) : [schema.const];
  const others = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((one) => listChoices(one));
  return [...own.filter((value) => typeof value === 'string'), ...others];
}

/** What a command line asks of a tool. */
export type CommandLine =
  | { readonly kind: 'help' }
  | { readonly kind: 'call'; readonly input: JsonObject; readonly asJson: boolean }
  | { readonly kind: 'wrong'; readonly problem: string };

/** A command line that cannot be understood; its message explains what to write instead. */
class WrongCommandLine extends Error {
  override readonly name = 'WrongCommandLine';
}

/** Stands for what comes from standard input. */
const FROM_STDIN = '-';

/** Reads what follows a tool's name: `--name value` by the tool's own schema, `--json '{…}'`, `--as-json`, `--help`. */
export function readCommandLine(argv: readonly string[], known: readonly Argument[], stdin: string | null): CommandLine {
  try {
    return new Reader(known, stdin).read(argv);
  } catch (error) {
    if (error instanceof WrongCommandLine) return { kind: 'wrong', problem: error.message };
    throw error;
  }
}

class Reader {
  readonly #known: readonly Argument[];
  readonly #stdin: string | null;
  readonly #input: Record<string, unknown> = {};
  #asJson = false;

  constructor(known: readonly Argument[], stdin: string | null) {
    this.#known = known;
    this.#stdin = stdin;
  }

  read(argv: readonly string[]): CommandLine {
    const rest = [...argv];
    for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
      if (word === '--help' || word === '-h') return { kind: 'help' };
      if (word === '--as-json') this.#asJson = true;
      else this.#take(word, rest);
    }
    const missing = this.#known.filter(({ name, isRequired }) => isRequired && this.#input[name] === undefined);
    if (missing.length > 0) throw new WrongCommandLine(`${missing.map(({ name }) => `--${name}`).join(' and ')} must be given.`);
    return { kind: 'call', input: this.#input, asJson: this.#asJson };
  }

  #take(word: string, rest: string[]): void {
    const [, flag, equals] = /^--([^=]+)(=[^]*)?$/u.exec(word) ?? [];
    if (flag === undefined) throw new WrongCommandLine(`"${word}" is no --argument. Write --argument value for each.`);
    const inline = equals?.slice(1);
    if (flag === 'json') {
      this.#takeObject(inline ?? rest.shift());
      return;
    }
    const argument = this.#find(flag);
    const value = inline ?? this.#nextValue(argument, rest);
    this.#set(argument, value === FROM_STDIN ? this.#fromStdin() : value);
  }

  #takeObject(text: string | undefined): void {
    if (text === undefined) throw new WrongCommandLine(`--json needs an object, or ${FROM_STDIN} for standard input.`);
    const object = JsonObject.safeParse(parseJson(text === FROM_STDIN ? this.#fromStdin() : text));
    if (!object.success) throw new WrongCommandLine('What --json was given is not one JSON object.');
    Object.assign(this.#input, object.data);
  }

  /** Finds the argument by its exact name first; then `--timeout-ms` and `--timeout_ms` are timeoutMs too. */
  #find(flag: string): Argument {
    const found = this.#known.find(({ name }) => name === flag) ?? this.#known.find(({ name }) => folded(name) === folded(flag));
    if (found !== undefined) return found;
    const names = this.#known.map(({ name }) => `--${name}`).join(', ');
    throw new WrongCommandLine(`There is no argument --${flag}. ${names === '' ? 'It takes none.' : `It takes ${names}.`}`);
  }

  /** A switch needs no value, and takes the next word only when that is one. */
  #nextValue({ name, kinds }: Argument, rest: string[]): string {
    if (kinds.has('boolean') && kinds.size === 1 && rest[0] !== 'true' && rest[0] !== 'false') return 'true';
    const value = rest.shift();
    if (value === undefined) throw new WrongCommandLine(`--${name} needs a value.`);
    return value;
  }

  #set(argument: Argument, text: string): void {
    const { name, kinds, elementKinds } = argument;
    const before = this.#input[name];
    if (!kinds.has('array')) {
      if (before !== undefined) throw new WrongCommandLine(`--${name} is given twice.`);
      this.#input[name] = readValue(name, text, kinds);
      return;
    }
    const given = parseJson(text);
    const more: unknown[] = Array.isArray(given) ? given : [readValue(name, text, elementKinds)];
    this.#input[name] = [...(Array.isArray(before) ? (before as unknown[]) : []), ...more];
  }

  #fromStdin(): string {
    if (this.#stdin === null) throw new WrongCommandLine('There is nothing on standard input.');
    return this.#stdin;
  }
}

/** The text as the first of the kinds that it can be; unchanged where a string is allowed. */
function readValue(name: string, text: string, kinds: Argument['kinds']): unknown {
  if (kinds.size === 1 && kinds.has('string')) return text;
  const value = parseJson(text);
  if (isAnyKind(value, kinds)) return value;
  if (kinds.size === 0 || kinds.has('string')) return value === undefined || kinds.size > 0 ? text : value;
  throw new WrongCommandLine(`--${name} must be ${[...kinds].join(' or ')}, and ${JSON.stringify(text.slice(0, 40))} is not.`);
}

function isAnyKind(value: unknown, kinds: Argument['kinds']): boolean {
  if (typeof value === 'number') return kinds.has('number') || (kinds.has('integer') && Number.isSafeInteger(value));
  if (typeof value === 'boolean') return kinds.has('boolean');
  if (Array.isArray(value)) return kinds.has('array');
  return typeof value === 'object' && value !== null && kinds.has('object');
}

/** Undefined for text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/gu, '');
}

const SUMMARY_MAX_CHARACTERS = 90;

const exits = 'Exit codes: 0 done, 1 the tool reports an error, 2 wrong command line, 3 not connected, 4 too many calls in this turn.';

/** `concierge --help`. */
export function listHelp(tools: readonly ModelTool[]): string {
  const width = Math.max(...tools.map(({ name }) => name.length));
  return [
    'concierge calls the tools of the agent whose turn this is, with the rights of that agent.',
    '',
    'Usage: concierge <tool> --argument value …',
    "       concierge <tool> --json '{…}'      all arguments as one object; - reads it from standard input",
    '       concierge <tool> --help            what it does and what it takes',
    '',
    'Tools:',
    ...tools.map(({ name, description }) => `  ${name.padEnd(width)}  ${shortenDescription(description)}`),
    '',
    'The result goes to standard output, errors to standard error. With --as-json the result is {"output": …, "isError": …}.',
    'A value of - is read from standard input: date | concierge write --path memory/now.md --content -',
    exits,
  ].join('\n');
}

/** `concierge <tool> --help`. */
export function toolHelp({ name, description }: ModelTool, known: readonly Argument[]): string {
  const sorted = known.toSorted((one, other) => Number(other.isRequired) - Number(one.isRequired));
  const usage = sorted.map((argument) => (argument.isRequired ? showForm(argument) : `[${showForm(argument)}]`));
  return [
    `Usage: ${['concierge', name, ...usage].join(' ')}`,
    '',
    description,
    '',
    sorted.length === 0 ? 'It takes no arguments.' : 'Arguments:',
    ...sorted.map((argument) => showArgument(argument)),
    '',
    "All arguments at once: --json '{…}', or --json - from standard input. A value of - is read from standard input.",
    'With --as-json the result is one JSON object: {"output": …, "isError": …}.',
    exits,
  ].join('\n');
}

function showForm({ name, kinds, choices }: Argument): string {
  if (choices.length > 0) return `--${name} ${choices.join('|')}`;
  if (kinds.size === 1 && kinds.has('boolean')) return `--${name}`;
  return `--${name} <${kinds.size === 0 ? 'value' : [...kinds].join('|')}>`;
}

function showArgument(argument: Argument): string {
  const facts = [
    argument.isRequired ? 'required' : '',
    argument.kinds.has('array') ? 'a JSON array, or given several times' : '',
    argument.kinds.has('object') ? 'as JSON' : '',
    argument.defaultValue === undefined ? '' : `default ${argument.defaultValue}`,
  ].filter((fact) => fact !== '');
  const about = [facts.length === 0 ? '' : `(${facts.join('; ')})`, argument.description].filter((part) => part !== '').join(' ');
  return `  ${showForm(argument)}${about === '' ? '' : `\n      ${about}`}`;
}

function shortenDescription(description: string): string {
  const sentence = /^[^]*?[.:;](?=\s|$)/u.exec(description)?.[0].slice(0, -1) ?? description;
  const line = sentence.replaceAll(/\s+/gu, ' ');
  return line.length <= SUMMARY_MAX_CHARACTERS ? line : `${line.slice(0, line.lastIndexOf(' ', SUMMARY_MAX_CHARACTERS))} …`;
}
