import { readdir, readFile } from 'node:fs/promises';

/** Of all its threads. */
export async function childrenOf(processId: number): Promise<number[]> {
  const threads = await readdir(`/proc/${String(processId)}/task`).catch(() => []);
  const lists = await Promise.all(threads.map(async (thread) => readIfThere(`/proc/${String(processId)}/task/${thread}/children`)));
  return lists
    .flatMap((list) => list.trim().split(' '))
    .filter((id) => id !== '')
    .map(Number);
}

export async function readIfThere(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
