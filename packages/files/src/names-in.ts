import { readdir } from 'node:fs/promises';
import { isSystemError } from './system-error.ts';

/** What lies in a folder of ours, in no order; nothing when there is none. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return [];
    throw error;
  }
}
