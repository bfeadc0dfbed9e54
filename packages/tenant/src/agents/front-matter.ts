import { createRequire } from 'node:module';
import type { FileProblem, FileProblemCode } from '@concierge/contract';
import type Matter from 'gray-matter';

const require = createRequire(import.meta.url);

const maxFrontMatterBytes = 64 * 1024;

export interface FrontMatter {
  /** As YAML has it; read it through a schema. */
  readonly data: unknown;
  /** What follows the closing fence. */
  readonly body: string;
}

/** The front matter cannot be used; the message states the reason and may be shown to the tenant. */
export class FrontMatterError extends Error {
  override readonly name = 'FrontMatterError';
  readonly problem: FileProblem;

  constructor(message: string, code: FileProblemCode, params: FileProblem['params'] = {}) {
    super(message);
    this.problem = { message, code, params };
  }
}

function refuse(): never {
  throw new FrontMatterError('only YAML front matter is read', 'front_matter_language');
}

/**
 * Splits a Markdown file into its YAML front matter and its body. A file that begins with no fence is all body. The
 * only way to gray-matter in this repository: left to itself it takes the language from the opening fence, and for
 * `---js` it runs the text as a program. @throws FrontMatterError
 */
export function parseFrontMatter(text: string): FrontMatter {
  const source = text.startsWith('\uFEFF') ? text.slice(1) : text;
  if (!source.startsWith('---')) return { data: {}, body: source };
  const opening = /^---[ \t]*\r?\n/u.exec(source);
  if (opening === null) throw new FrontMatterError('the front matter must open with a line of just ---', 'front_matter_opening');
  const closing = /^---[ \t]*\r?$/mu.exec(source.slice(opening[0].length));
  if (closing === null) throw new FrontMatterError('the front matter is not closed by a line of just ---', 'front_matter_unclosed');
  if (closing.index > maxFrontMatterBytes) throw new FrontMatterError('the front matter is too long', 'front_matter_too_long');
  const block = source.slice(opening[0].length, opening[0].length + closing.index);
  const body = source.slice(opening[0].length + closing.index + closing[0].length).replace(/^\n/u, '');
  return { data: parseYaml(block), body };
}

/** The opposite: fields that are undefined are left out. */
export function stringifyFrontMatter(fields: Readonly<Record<string, unknown>>, body: string): string {
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  // As an object: the body in a string would be parsed for front matter first.
  return loadLibrary().stringify({ content: body }, given, { language: 'yaml' });
}

/** On demand: it brings a parser of YAML and one of JavaScript, 40 ms of a command that reads no such file. */
function loadLibrary(): typeof Matter {
  return require('gray-matter');
}

function parseYaml(block: string): unknown {
  try {
    // Options are never left out: without them results are shared between callers and a second parse hides the error of
    // the first.
    return loadLibrary()(`---\n${block}\n---\n`, { language: 'yaml', engines: { js: refuse, javascript: refuse, json: refuse } }).data;
  } catch (error) {
    if (error instanceof FrontMatterError) throw error;
    const reason = firstLine(error);
    throw new FrontMatterError(`the front matter is not YAML: ${reason}`, 'front_matter_yaml', { reason });
  }
}

function firstLine(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'it cannot be read';
}
