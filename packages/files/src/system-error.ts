import { readdir } from 'node:fs/promises';

/** Is this an error of the operating system with one of these codes, such as `ENOENT`? */
export function isSystemError(error: unknown, ...codes: readonly string[]): error is NodeJS.ErrnoException {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' && codes.includes(error.code);
}

/** For clearing up, where a file that is gone already is what was wanted. */
export async function ignoreMissing(task: Promise<unknown>): Promise<void> {
  try {
    await task;
  } catch (error) {
    if (!isSystemError(error, 'ENOENT', 'ENOTDIR')) throw error;
  }
}

/** The error as it is; what is thrown and is none, as the cause of one. */
export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error), { cause: error });
}

/** What lies in a folder of ours, in no order; nothing when there is none. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return [];
    throw error;
  }
}
