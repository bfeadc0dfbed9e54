import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';

/** A service was started with values it cannot use. `problems` holds one line for every one of them. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`bad configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.problems = problems;
  }
}

/**
 * Variables with a secret in them: their values are never shown, and each may stand in a file that NAME_FILE names.
 * Keys of model providers are such variables, too; the providers file names them (`readSecret`).
 */
const secretNames: ReadonlySet<string> = new Set([
  'KEY_SECRET',
  'SECRETS_KEY',
  'OPS_TOKEN',
  'CONSOLE_SECRET',
  'REDIS_URL',
  'REDIS_PASSWORD',
  'DATABASE_URL',
  'DATABASE_PASSWORD',
  'WEB_SEARCH_KEY',
  'SMTP_URL',
  'OTEL_EXPORTER_OTLP_HEADERS',
]);

const SECRET_MAX_BYTES = 16 * 1024;
const SHOWN_MAX_CHARACTERS = 80;

/** A variable as it was given; `value` undefined: not set, which an empty variable and an empty file count as, too. */
interface Given {
  readonly value: string | undefined;
  /** Where it was read from, when not from the variable itself. */
  readonly file?: string | undefined;
}

const fileVariable = (name: string): string => `${name}_FILE`;

/**
 * The secret of this name: the variable's own value, or the content of the file that NAME_FILE names, without one
 * newline at its end. Undefined when neither is set.
 * @throws ConfigError when both are set, or the file cannot be read
 */
export function readSecret(env: NodeJS.ProcessEnv, name: string): string | undefined {
  return lookUpSecret(env, name).value;
}

/** @throws ConfigError */
function lookUpSecret(env: NodeJS.ProcessEnv, name: string): Given {
  const own = lookUp(env, name);
  const { value: file } = lookUp(env, fileVariable(name));
  if (file === undefined) return own;
  if (own.value !== undefined) throw new ConfigError([`${fileVariable(name)}: cannot be set beside ${name}; set one of the two`]);
  try {
    return { value: readSecretFile(file), file };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError([`${fileVariable(name)}: must name a file with the value of ${name} (given: ${quote(file)}: ${reason})`]);
  }
}

function lookUp(env: NodeJS.ProcessEnv, name: string): Given {
  const value = env[name];
  return { value: value === '' ? undefined : value };
}

/** @throws Error */
function readSecretFile(path: string): string | undefined {
  // Asked first: to open a pipe would wait for its writer, and Docker makes a folder of a file that is not there.
  const { size } = whenRegular(path);
  if (size > SECRET_MAX_BYTES) throw new Error(`it has more than ${String(SECRET_MAX_BYTES)} bytes`);
  const text = readFileSync(path, 'utf8').replace(/\r?\n$/u, '');
  if (text.includes('\0') || text.includes('\uFFFD')) throw new Error('it is no text');
  return text === '' ? undefined : text;
}

function whenRegular(path: string): { readonly size: number } {
  const found = statSync(path);
  if (!found.isFile()) throw new Error('it is no regular file');
  return found;
}

type Found = Iterable<readonly [name: string, message: string]>;

/** What is wrong with several variables together. */
export type Check = (values: Readonly<Record<string, string>>) => Found;

/** `find` gets the variables of the shape, where each of them is right by itself. */
export function checkTogether<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
  find: (given: z.output<z.ZodObject<Shape>>) => Found,
): Check {
  const Together = z.object(shape);
  return (values) => {
    const { data } = Together.safeParse(values);
    return data === undefined ? [] : find(data);
  };
}

/** The variables are the keys of the shape. */
interface Shaped {
  readonly shape: object;
}

/** What a configuration is parsed by: an object of variables, as it is or with what it is transformed into. */
type ConfigSchema<Output> = z.ZodType<Output> & (Shaped | { readonly in: Shaped });

interface Variables {
  readonly given: ReadonlyMap<string, Given>;
  readonly problems: readonly string[];
  /** Names whose value could not be read: nothing more is said of them. */
  readonly unread: ReadonlySet<string>;
}

/**
 * Parses the environment of one service. An empty variable counts as unset, as compose files write it. The checks are
 * made also where other variables are wrong.
 * @throws ConfigError listing every bad value at once
 */
export function parseConfig<Output>(schema: ConfigSchema<Output>, env: NodeJS.ProcessEnv, checks: readonly Check[] = []): Output {
  const variables = readVariables(Object.keys('shape' in schema ? schema.shape : schema.in.shape), env);
  const values = Object.fromEntries([...variables.given].flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value]])));
  const parsed = schema.safeParse(values);
  const found = new Map<string, string>();
  for (const issue of parsed.error?.issues ?? []) {
    const path = issue.path.join('.');
    if (!found.has(path)) found.set(path, explain(issue, values[String(issue.path[0])]));
  }
  for (const [name, message] of checks.flatMap((check) => [...check(values)])) found.set(name, message);
  const problems = [...variables.problems, ...describe(found, variables)];
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  return parsed.data;
}

function readVariables(names: readonly string[], env: NodeJS.ProcessEnv): Variables {
  const given = new Map<string, Given>();
  const problems: string[] = [];
  const unread = new Set<string>();
  for (const name of names) {
    try {
      given.set(name, secretNames.has(name) ? lookUpSecret(env, name) : lookUp(env, name));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
      unread.add(name);
    }
  }
  return { given, problems, unread };
}

/** One line for each: what is allowed, and what was given. `found`: messages by the name, or by name and place. */
function describe(found: ReadonlyMap<string, string>, { given, unread }: Variables): string[] {
  return [...found].flatMap(([path, message]) => {
    const [name = path] = path.split('.', 1);
    return unread.has(name) ? [] : [`${path}: ${message} (${show(name, given.get(name))})`];
  });
}

function explain(issue: z.core.$ZodIssue, value: string | undefined): string {
  if (issue.code === 'invalid_value' && issue.message.startsWith('Invalid option')) {
    const names = issue.values.map(String);
    return `must be ${[names.slice(0, -1).join(', '), ...names.slice(-1)].join(' or ')}`;
  }
  return value === undefined && issue.message.startsWith('Invalid input') ? 'is required' : issue.message;
}

/** Of a secret, its length is all that may be shown; an address is shown without a password that may be in it. */
function show(name: string, { value, file }: Given = { value: undefined }): string {
  if (value === undefined) return 'not set';
  const where = file === undefined ? '' : ` from ${file}`;
  if (secretNames.has(name)) return `given: ${String(value.length)} characters${where}`;
  return `given: ${quote(value.replaceAll(/\/\/[^/@\s]*@/gu, '//…@'))}${where}`;
}

function quote(text: string): string {
  const shown = text.length > SHOWN_MAX_CHARACTERS ? `${text.slice(0, SHOWN_MAX_CHARACTERS)}…` : text;
  return JSON.stringify(shown);
}

/** A whole number within limits that its error names. */
export function wholeNumber({ min = 0, max }: { readonly min?: number; readonly max: number }) {
  const error = `must be a whole number from ${String(min)} to ${String(max)}`;
  return z.coerce.number({ error }).int({ error }).min(min, { error }).max(max, { error });
}

/** Seconds, parts of them too. */
export function seconds({ max, zero = true }: { readonly max: number; readonly zero?: boolean }) {
  const error = `must be a number of seconds ${zero ? 'from 0' : 'above 0'} to ${String(max)}`;
  const number = z.coerce.number({ error });
  return (zero ? number.nonnegative({ error }) : number.positive({ error })).max(max, { error });
}

export const port = wholeNumber({ max: 65_535 });
