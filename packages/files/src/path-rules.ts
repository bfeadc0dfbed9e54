import { AppError, limits } from '@concierge/contract';
import { temporaryPrefix } from './atomic-file.ts';

const maxSegments = 32;
const maxPathBytes = 4096;

/** Two names that some file system, or some reader, takes for one. */
export function foldName(name: string): string {
  return name.normalize('NFKC').toLowerCase();
}

/** Why a single name is refused; undefined when it is fine (reliability, "Paths"). */
export function nameProblem(name: string): string | undefined {
  if (name === '') return 'has an empty part';
  if (name === '.' || name === '..') return 'must not contain . or ..';
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f]/u.test(name)) return 'must not contain control characters';
  if (/[\\/]/u.test(name)) return 'must not contain a backslash';
  if (!name.isWellFormed()) return 'is not valid Unicode';
  if (Buffer.byteLength(name) > limits.pathSegmentMaxBytes) return `has a part longer than ${String(limits.pathSegmentMaxBytes)} bytes`;
  if (name !== name.normalize('NFKC')) return 'has characters with a plainer spelling (NFKC)';
  if (name.startsWith(temporaryPrefix)) return `must not have a part that begins with ${temporaryPrefix}`;
  return undefined;
}

/** Splits a relative path into names that each passed the rules. @throws AppError invalid_request */
export function parsePath(path: string): readonly [string, ...string[]] {
  const [first = '', ...rest] = path.split('/');
  const segments: [string, ...string[]] = [first, ...rest];
  if (Buffer.byteLength(path) > maxPathBytes || segments.length > maxSegments) throw invalidPath('is too long');
  for (const segment of segments) {
    const problem = nameProblem(segment);
    if (problem !== undefined) throw invalidPath(problem);
  }
  return segments;
}

export function invalidPath(problem: string): AppError {
  return new AppError('invalid_request', `The path ${problem}.`, { errors: [{ path: 'path', message: problem }] });
}
