import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LogsOnDisk } from '@concierge/turn';

/** How many turns of all tenants are accepted and unanswered, by what is on disk: inboxes and write-ahead logs. */
export async function countUnanswered(tenantsFolder: string): Promise<number> {
  const names = await readdir(tenantsFolder);
  const inboxes = await Promise.all(names.map(async (name) => readdir(join(tenantsFolder, name, 'inbox')).catch((): string[] => [])));
  const filed = inboxes.flat().filter((name) => /^t_[0-9a-f]+\.json$/u.test(name));
  return filed.length + (await new LogsOnDisk(join(tenantsFolder, '.wal')).turns()).length;
}
