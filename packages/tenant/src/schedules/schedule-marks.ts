import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isSystemError, namesIn } from '@concierge/files';

const definition = /^(s_[0-9a-f]{32})\.json$/u;

/** Every schedule in the folder, with a mark that is another one after each change of its definition or its history. */
export async function markSchedules(folder: string): Promise<ReadonlyMap<string, string>> {
  const files = await namesIn(folder);
  const ids = files.map((file) => definition.exec(file)?.[1]).filter((id) => id !== undefined);
  const marks = await Promise.all(
    ids.map(async (id) => [id, `${await fileMark(join(folder, `${id}.json`))} ${await fileMark(join(folder, id))}`] as const),
  );
  return new Map(marks);
}

/** Another one after each change of what is there; a dash for nothing. */
export async function fileMark(path: string): Promise<string> {
  try {
    const { ino, mtimeNs } = await stat(path, { bigint: true });
    return `${String(ino)}.${String(mtimeNs)}`;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return '-';
    throw error;
  }
}
