import { JsonObject } from '@concierge/contract';
import type { Argument } from './argument-schema.ts';

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
    const object = JsonObject.safeParse(jsonOf(text === FROM_STDIN ? this.#fromStdin() : text));
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
      this.#input[name] = valueOf(name, text, kinds);
      return;
    }
    const given = jsonOf(text);
    const more: unknown[] = Array.isArray(given) ? given : [valueOf(name, text, elementKinds)];
    this.#input[name] = [...(Array.isArray(before) ? (before as unknown[]) : []), ...more];
  }

  #fromStdin(): string {
    if (this.#stdin === null) throw new WrongCommandLine('There is nothing on standard input.');
    return this.#stdin;
  }
}

/** The text as the first of the kinds that it can be; unchanged where a string is allowed. */
function valueOf(name: string, text: string, kinds: Argument['kinds']): unknown {
  if (kinds.size === 1 && kinds.has('string')) return text;
  const value = jsonOf(text);
  if (isOneOf(value, kinds)) return value;
  if (kinds.size === 0 || kinds.has('string')) return value === undefined || kinds.size > 0 ? text : value;
  throw new WrongCommandLine(`--${name} must be ${[...kinds].join(' or ')}, and ${JSON.stringify(text.slice(0, 40))} is not.`);
}

function isOneOf(value: unknown, kinds: Argument['kinds']): boolean {
  if (typeof value === 'number') return kinds.has('number') || (kinds.has('integer') && Number.isSafeInteger(value));
  if (typeof value === 'boolean') return kinds.has('boolean');
  if (Array.isArray(value)) return kinds.has('array');
  return typeof value === 'object' && value !== null && kinds.has('object');
}

/** Undefined for text that is not JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/gu, '');
}
