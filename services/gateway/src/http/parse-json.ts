import { AppError, limits } from '@concierge/contract';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Strict UTF-8, the byte order mark kept. @throws AppError of `code` */
export function decodeText(bytes: Uint8Array, code: 'invalid_json' | 'invalid_request'): string {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    throw new AppError(code, 'The body is not valid UTF-8.', { cause: error });
  }
}

/**
 * JSON as a client may send it: strict UTF-8, at most limits.jsonMaxDepth deep and of limits.jsonMaxValues values,
 * every string well-formed (a lone surrogate would be another string once it is written as UTF-8).
 * @throws AppError `invalid_json`
 */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decodeText(bytes, 'invalid_json');
  const value = parse(text);
  new Walk().visit(value, limits.jsonMaxDepth);
  return value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AppError('invalid_json', undefined, { cause: error });
  }
}

/**
 * A walk over a value that counts: schemas make an issue for each value that is wrong, so there may be only so many.
 */
class Walk {
  #left: number = limits.jsonMaxValues;

  visit(value: unknown, levels: number): void {
    this.#left -= 1;
    if (this.#left < 0) throw new AppError('invalid_json', `The body has more than ${String(limits.jsonMaxValues)} values.`);
    if (typeof value === 'string') {
      if (!value.isWellFormed()) throw new AppError('invalid_json', 'A string has half of a surrogate pair.');
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    if (levels === 0) throw new AppError('invalid_json', `The body is nested deeper than ${String(limits.jsonMaxDepth)} levels.`);
    if (Array.isArray(value)) {
      for (const item of value) this.visit(item, levels - 1);
      return;
    }
    for (const [key, item] of Object.entries(value)) {
      if (!key.isWellFormed()) throw new AppError('invalid_json', 'A name has half of a surrogate pair.');
      this.visit(item, levels - 1);
    }
  }
}
