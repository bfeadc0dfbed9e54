import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { join, dirname } from 'node:path';
import { randomBytes } from 'node:crypto';
import type { TenantPlan } from '@concierge/contract';
import { FolderSync, readContent, walkTree } from '@concierge/files';
import type { z } from 'zod';
import { writeFirstSettings } from './settings/settings-files.ts';

/** Beside src and dist, so that both find it. */
const starterFolder = fileURLToPath(new URL('../starter/', import.meta.url));
const visibleMode = 0o644;
const ownFolders = [
  'settings',
  'sessions',
  'sessions/.revisions',
  'inbox',
  'keys',
  'channels',
  'cron',
  'handoffs',
  'outbox',
  'widget',
  'events',
  'uploads',
  'memory',
  'contacts',
  'templates',
  'agents',
] as const;

/**
 * Fills the folder of a new tenant: starter context files, an example skill and template, settings. All of it is on
 * disk when this returns.
 */
export async function writeStarter(root: string, plan: z.infer<typeof TenantPlan>): Promise<void> {
  const folders = new Set<string>([root]);
  for (const name of ownFolders) {
    await mkdir(join(root, name), { recursive: true });
    folders.add(join(root, name));
  }
  for await (const { path, content } of walkTree(starterFolder, { isOwn: () => true })) {
    const to = join(root, path);
    if (content === undefined) {
      await mkdir(to, { recursive: true });
      folders.add(to);
    } else {
      await writeFile(to, await readContent(content), { mode: visibleMode, flush: true });
    }
  }
  await markIncarnation(root);
  await writeFirstSettings(root, { plan });
  const sync = new FolderSync();
  await Promise.all([...folders].map(async (folder) => sync.sync(folder)));
}

/** What `TenantScope.identity` is derived from, in a folder that commands of the tenant do not see. */
export const incarnationFile = 'settings/incarnation';

/** For a tenant that is being made: in place of the mark that it may have. `settings/` is there, or made. */
export async function markIncarnation(root: string): Promise<void> {
  const path = join(root, incarnationFile);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, randomBytes(8).toString('hex'), { mode: 0o600, flush: true });
}
