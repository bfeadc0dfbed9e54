import { hash, timingSafeEqual } from 'node:crypto';

/** JSON has a spelling for each of them. */
type Part = string | null | readonly string[];

export interface PartsHash {
  /**
   * `json`: the parts as a JSON array, which keeps any two lists apart. `unit`: texts joined by U+001F, as ids of
   * sessions and turns began; their parts are never null and hold no such character.
   */
  readonly separator: 'json' | 'unit';
  /** Hex digits that are kept. Default: all 64. */
  readonly digits?: number;
}

/**
 * The SHA-256 of what an id or a request is derived from, in hex: the same parts give the same id in every process.
 * Stored ids depend on each byte, so an id keeps its parts, their order and its separator for ever.
 */
export function hashParts(parts: readonly Part[], { separator, digits }: PartsHash): string {
  return hash('sha256', separator === 'json' ? JSON.stringify(parts) : parts.join('\u001f')).slice(0, digits);
}

/**
 * Whether both are the same, in time that does not reveal how much of them is. A missing text equals nothing, and
 * neither does an empty secret; refusing takes as long.
 */
export function isSameSecret(given: string | undefined, secret: string | undefined): boolean {
  const isEqual = timingSafeEqual(hash('sha256', given ?? '', 'buffer'), hash('sha256', secret ?? '', 'buffer'));
  return isEqual && given !== undefined && secret !== undefined && secret !== '';
}
