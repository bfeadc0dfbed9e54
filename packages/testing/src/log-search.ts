import { createReadStream } from 'node:fs';
import { basename } from 'node:path';

/** A text that is in a log and must not be. It is named, not quoted. */
export interface LogHit {
  /** The file's name. */
  readonly file: string;
  readonly what: string;
  /** What the log has just before it. */
  readonly before: string;
}

/** Shorter texts come about by chance. */
const MIN_CHARACTERS = 12;
const BEFORE_CHARACTERS = 160;
const CHUNK_BYTES = 1024 * 1024;
/** A pattern may match across two chunks as far as this. */
const OVERLAP_CHARACTERS = 512;

/** What no log may have, whatever the test: API keys, and messages, which directives of the scripted model mark. */
const patterns: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['an API key', /ck_live_[\w-]{16}/u],
  ['the text of a message', /\[\[(?:say|tools|hang|finish|usage|wait|fail)[:\]]/u],
];

const secretNames = /(?:KEY|SECRET|TOKEN|PASSWORD)$/u;

/**
 * Searches the logs of services for what a test has handed out: secrets, and texts of messages. It finds only what is
 * there: a service that prints nothing of the kind never fails a test, however slow the machine is.
 */
export class LogSearch {
  /** By text. */
  readonly #planted = new Map<string, string>();

  /** `what` stands for it in an error. */
  plant(what: string, text: string): void {
    if (text.length >= MIN_CHARACTERS) this.#planted.set(text, what);
  }

  /** The variables of a service whose names say that they are secret. */
  plantSecrets(env: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(env)) if (secretNames.test(name)) this.plant(name, value);
  }

  /** One hit for each text and file; a file that is not there has none. */
  async findHits(files: readonly string[]): Promise<LogHit[]> {
    const hits: LogHit[] = [];
    for (const file of files) hits.push(...(await this.#searchFile(file)));
    return hits;
  }

  async #searchFile(file: string): Promise<LogHit[]> {
    const found = new Map<string, LogHit>();
    const overlap = Math.max(OVERLAP_CHARACTERS, ...Array.from(this.#planted.keys(), ({ length }) => length));
    let tail = '';
    try {
      for await (const chunk of createReadStream(file, { encoding: 'utf8', highWaterMark: CHUNK_BYTES })) {
        const text = tail + String(chunk);
        for (const [what, at] of this.#findIn(text)) {
          const before = text.slice(Math.max(0, at - BEFORE_CHARACTERS), at);
          if (!found.has(what)) found.set(what, { file: basename(file), what, before });
        }
        tail = text.slice(-overlap);
      }
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    return [...found.values()];
  }

  *#findIn(text: string): Iterable<readonly [what: string, at: number]> {
    for (const [planted, what] of this.#planted) {
      const at = text.indexOf(planted);
      if (at !== -1) yield [what, at];
    }
    for (const [what, pattern] of patterns) {
      const at = text.search(pattern);
      if (at !== -1) yield [what, at];
    }
  }
}

/** In a test runner an error of `node:fs` is no instance of the runner's own `Error`. */
function isMissing(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT';
}

export function describeHits(hits: readonly LogHit[]): string {
  const lines = hits.map(({ file, what, before }) => `${file} has ${what} behind: ${before}`);
  return ['Logs have what they must not have:', ...lines].join('\n');
}
