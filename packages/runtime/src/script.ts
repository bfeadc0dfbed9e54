import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

/** What a Lua script may return: Redis' own types as ioredis reads them. */
export type ScriptReply = string | number | null | ScriptReply[];

/**
 * One Lua script from a `.lua` file. Runs by its hash; a Redis that does not know it (new, or emptied) is given the
 * text once more. `#include "name.lua"` lines are replaced by that file, from the folder of the including one, once:
 * files may include others.
 */
export class RedisScript {
  readonly #text: string;
  readonly #sha: string;

  constructor(file: URL) {
    this.#text = readWithIncludes(file, new Set());
    this.#sha = createHash('sha1').update(this.#text).digest('hex');
  }

  async run(redis: Redis, keys: readonly string[], args: readonly (string | number)[]): Promise<ScriptReply> {
    try {
      return toReply(await redis.evalsha(this.#sha, keys.length, ...keys, ...args));
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return toReply(await redis.eval(this.#text, keys.length, ...keys, ...args));
    }
  }
}

function readWithIncludes(file: URL, included: Set<string>): string {
  return readFileSync(file, 'utf8').replaceAll(/^#include "(?<name>[\w./-]+)"$/gmu, (_line, name: string) => {
    const other = new URL(name, file);
    if (included.has(other.href)) return '';
    included.add(other.href);
    return readWithIncludes(other, included);
  });
}

function toReply(answer: unknown): ScriptReply {
  if (answer === null || typeof answer === 'string' || typeof answer === 'number') return answer;
  if (Array.isArray(answer)) return answer.map((item) => toReply(item));
  throw new TypeError(`a script answered ${typeof answer}`);
}
