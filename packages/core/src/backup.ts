import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rmdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { AppError } from '@concierge/contract';
import { FolderSync, isSystemError, lstatIfThere, readIfThere, removeFolderIn, walkTree, type TreeEntry } from '@concierge/files';
import { isPrivateName, type Tenants } from '@concierge/tenant';
import { z } from 'zod';
import { FILE_MODE, FOLDER_MODE, packEntries, unpackArchive, type Streamed } from './tar-archive.ts';

const Manifest = z.object({ version: z.literal(1), beganAt: z.iso.datetime(), tenants: z.array(z.string()) });
type Manifest = z.infer<typeof Manifest>;

const manifestName = 'backup.json';
const tenantsName = 'tenants';
const logsName = '.wal';
const sessionView = /^sessions\/[0-9a-f]{32}\.json$/u;
const endedFolders = ['outbox/settled', 'events/sent'];
const deadFolders = ['outbox/dead', 'events/dead'];

/**
 * What of a tenant is copied in which order. A file that moves while it is copied is met at one of its places, since
 * each place is read after those from which something comes to it: an accepted turn before the conversation that
 * answers it, a conversation before the history that takes messages out of it and before what it has sent, what waits
 * before what has ended. What was given up may wait again: it is read on both sides.
 */
const passes: readonly ((path: string) => boolean)[] = [
  (path) => isIn(path, 'inbox'),
  (path) => path === 'sessions' || sessionView.test(path),
  (path) => isDead(path),
  (path) => !isIn(path, 'inbox') && !isIn(path, 'sessions/.revisions') && !sessionView.test(path) && !isEnded(path) && !isDead(path, true),
  (path) => isAbove(path, endedFolders) || isEnded(path),
  (path) => isDead(path),
];

function isIn(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

function isAbove(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => folder.startsWith(`${path}/`));
}

function isEnded(path: string): boolean {
  return endedFolders.some((folder) => isIn(path, folder));
}

/** `itself`: without the folders that lead there. */
function isDead(path: string, itself = false): boolean {
  return (!itself && isAbove(path, deadFolders)) || deadFolders.some((folder) => isIn(path, folder));
}

export interface BackupReport {
  readonly beganAt: string;
  readonly tenants: number;
  readonly files: number;
  /** Links, special files, files with a second name, and what is nested too deeply. */
  readonly leftOut: number;
  /** Files that lost bytes while they were read; zeros stand in their place. */
  readonly cutShort: number;
  /** Files of DATA_DIR that belong to a deployment and were asked for. */
  readonly copied: readonly string[];
}

export interface BackupOptions {
  readonly dataDir: string;
  readonly tenants: Pick<Tenants, 'list' | 'logsFolder'>;
  /** Files directly in DATA_DIR that go along, where they are there. */
  readonly alsoFiles: readonly string[];
}

/**
 * A copy of all tenants while services run. The write-ahead logs come first, before any file, and once: what is
 * acknowledged by then is in them or in files that are read later. (In a second copy, which is of a later moment, they
 * name turns as settled whose conversations were copied before.)
 */
export async function backUp({ dataDir, tenants, alsoFiles }: BackupOptions): Promise<Streamed<BackupReport>> {
  const counts = { files: 0, leftOut: 0, cutShort: 0 };
  const copied: string[] = [];
  const beganAt = new Date().toISOString();
  const ids = await tenants.list({ isSure: true });
  const manifest: Manifest = { version: 1, beganAt, tenants: [...ids] };
  const folder = join(dataDir, tenantsName);
  const walk = { onLeftOut: () => (counts.leftOut += 1), onCutShort: () => (counts.cutShort += 1) };
  async function* entries(): AsyncGenerator<TreeEntry> {
    yield toEntry(manifestName, Buffer.from(JSON.stringify(manifest)));
    yield* under(
      tenantsName,
      walkOwn(folder, (path) => isIn(path, logsName)),
    );
    yield* under(
      tenantsName,
      walkOwn(folder, (path) => path.startsWith('.') && !/^\.(?:wal|new-|removed-)/u.test(path)),
    );
    for (const id of ids) {
      // Removed meanwhile: it is left out as far as it has gone.
      for (const isWanted of passes)
        yield* under(`${tenantsName}/${id}`, walkIfThere(join(folder, id), { ...walk, isOwn: isPrivateName, isWanted }));
    }
    for (const name of alsoFiles) {
      const content = await readIfThere(join(dataDir, name));
      if (content === undefined) continue;
      copied.push(name);
      yield toEntry(name, Buffer.from(content));
    }
  }
  const counted = countFiles(entries(), () => (counts.files += 1));
  return { bytes: packEntries(counted), report: () => ({ beganAt, tenants: ids.length, ...counts, copied }) };
}

async function* countFiles(entries: AsyncIterable<TreeEntry>, onFile: () => void): AsyncGenerator<TreeEntry> {
  for await (const entry of entries) {
    if (entry.content !== undefined) onFile();
    yield entry;
  }
}

/** Folders of ours, in which nobody makes links. */
function walkOwn(folder: string, isWanted: (path: string) => boolean): AsyncGenerator<TreeEntry> {
  return walkTree(folder, { isOwn: () => true, isWanted });
}

async function* walkIfThere(folder: string, walk: Parameters<typeof walkTree>[1]): AsyncGenerator<TreeEntry> {
  if ((await lstatIfThere(folder)) === undefined) return;
  yield* walkTree(folder, walk);
}

async function* under(prefix: string, entries: AsyncIterable<TreeEntry>): AsyncGenerator<TreeEntry> {
  yield { path: prefix, mode: FOLDER_MODE, mtime: new Date(), content: undefined };
  for await (const entry of entries) yield { ...entry, path: `${prefix}/${entry.path}` };
}

function toEntry(path: string, content: Buffer): TreeEntry {
  async function* chunks(): AsyncGenerator<Buffer> {
    yield await Promise.resolve(content);
  }
  return { path, mode: FILE_MODE, mtime: new Date(), content: { size: content.length, chunks: chunks() } };
}

export interface RestoreReport {
  readonly beganAt: string;
  readonly tenants: readonly string[];
  readonly files: number;
  /** Files of the deployment that were in the backup, in place where there was none. */
  readonly copied: readonly string[];
}

/**
 * Unpacks a backup beside `tenants/` and puts it in place in one step; a deployment that has tenants is left alone.
 * @throws AppError conflict, invalid_request, overloaded
 */
export async function restore(source: AsyncIterable<Uint8Array>, dataDir: string): Promise<RestoreReport> {
  await mkdir(dataDir, { recursive: true, mode: FOLDER_MODE });
  const building = join(dataDir, `.restore-${randomBytes(6).toString('hex')}`);
  await mkdir(building, { mode: FOLDER_MODE });
  try {
    const files = await unpackArchive({ source, folder: building, strip: 0, rules: backupRules });
    const manifest = await readManifest(join(building, manifestName));
    await putInPlace(join(building, tenantsName), join(dataDir, tenantsName));
    const copied = await putFiles(building, dataDir);
    await new FolderSync().sync(dataDir);
    return { beganAt: manifest.beganAt, tenants: manifest.tenants, files, copied };
  } finally {
    await removeFolderIn(dataDir, basename(building));
  }
}

/** It is the operator's own: only the disk limits it. */
const backupRules = {
  archiveMaxBytes: Infinity,
  contentMaxBytes: Infinity,
  entriesMax: Infinity,
  findProblem: ([top, ...rest]: readonly string[]) =>
    top === tenantsName || rest.length === 0 ? undefined : 'This is not the backup of a deployment.',
  isWanted: () => true,
};

async function readManifest(path: string): Promise<Manifest> {
  try {
    return Manifest.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    throw new AppError('invalid_request', 'This is not the backup of a deployment.', { cause: error });
  }
}

async function putInPlace(from: string, to: string): Promise<void> {
  try {
    // Not what a start has made of itself before there was any tenant.
    await rmdir(to).catch((error: unknown) => {
      if (!isSystemError(error, 'ENOENT')) throw error;
    });
    await rename(from, to);
  } catch (error) {
    if (!isSystemError(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    throw new AppError('conflict', `${to} is not empty: a backup is restored where there are no tenants.`, { cause: error });
  }
}

async function putFiles(from: string, to: string): Promise<string[]> {
  const copied: string[] = [];
  for (const name of await readdir(from)) {
    if (name === manifestName || (await lstatIfThere(join(to, name))) !== undefined) continue;
    await rename(join(from, name), join(to, name));
    copied.push(name);
  }
  return copied;
}
