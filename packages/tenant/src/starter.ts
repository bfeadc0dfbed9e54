import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import type { TenantPlan, TenantSettings } from '@concierge/contract';
import { FolderSync, readContent, walkTree } from '@concierge/files';
import type { z } from 'zod';
import { markIncarnation } from './incarnation.ts';
import { formatSettings } from './settings/settings-files.ts';

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
  const settings: TenantSettings = { plan };
  await writeFile(join(root, 'tenant.json'), formatSettings(settings), { mode: 0o600, flush: true });
  const sync = new FolderSync();
  await Promise.all([...folders].map(async (folder) => sync.sync(folder)));
}
