import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { constants } from 'node:fs';
import { lchown, lstat, mkdir, open, readdir, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { SandboxUnavailable, type SandboxRequest } from './sandbox.ts';

/** The path of the tenant's folder inside. */
export const workspacePath = '/workspace';
/** The path of the dispatcher inside. */
export const dispatcherPath = '/run/concierge';

/** The user inside, and on this machine the owner of what is in the workspace. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The ids that a worker that runs as root gives tenants' folders to, one for each tenant: the kernel counts inotify
 * instances, pending signals, message queues and locked memory by user. Above the users of ordinary systems, below
 * 60,000, where Debian's reserved ids begin (Debian Policy 9.2.2), and within the 65,536 of an engine that remaps
 * users. Two tenants in a few hundred share one.
 */
const FIRST_TENANT_ID = 10_002;
const TENANT_IDS = 49_998;
/** All tenants had this id before; the owner of their folders is changed once more. */
const FORMER_ID = 10_001;

function ownerForTenant(tenantId: string): Owner {
  const uid = FIRST_TENANT_ID + (createHash('sha256').update(tenantId).digest().readUInt32BE() % TENANT_IDS);
  return { uid, gid: uid };
}

/** The state of the top of the workspace when a sandbox is made over it. */
export interface Workspace {
  readonly root: string;
  readonly owner: Owner;
  readonly maskedFolders: readonly string[];
  readonly maskedFiles: readonly MaskedFile[];
  /** Folders and files of `readOnly` that are there. */
  readonly readOnly: readonly string[];
}

/** A file that is replaced loses its cover in sandboxes that are already made: `inode` shows it. */
export interface MaskedFile {
  readonly name: string;
  readonly inode: number;
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
const handedOverDepthMax = 64;

/**
 * Inspects the names to be covered, never through a link. A missing masked folder is made, empty, because the tenant
 * could create an uncovered name and its readers in the service would then trust it. A link or a special file by a
 * masked name can only be the tenant's own: there is nothing behind it that is not in the sandbox, and it is left
 * alone.
 * @throws SandboxUnavailable when the tenant's folder is not there
 */
export async function prepareWorkspace({ root, masked, readOnly, tenantId }: SandboxRequest): Promise<Workspace> {
  for (const name of [...masked, ...readOnly]) assertTopName(name);
  const stats = await lookAt(root);
  if (stats?.isDirectory() !== true) throw new SandboxUnavailable('The workspace is not there.');
  const maskedFolders: string[] = [];
  const maskedFiles: MaskedFile[] = [];
  for (const name of masked) {
    const found = (await lookAt(join(root, name))) ?? (await makeFolder(root, name));
    if (found?.isDirectory() === true) maskedFolders.push(name);
    else if (found?.isFile() === true) maskedFiles.push({ name, inode: found.ino });
  }
  const owner = await findOwner({ root, stats, masked, tenantId });
  return { root, owner, maskedFolders, maskedFiles, readOnly: await thoseThere(root, readOnly) };
}

/** Whether one of the covered files has been replaced since: the new file is then visible in the older sandbox. */
export async function isUncovered({ root, maskedFiles }: Workspace): Promise<boolean> {
  for (const { name, inode } of maskedFiles) {
    if ((await lookAt(join(root, name)))?.ino !== inode) return true;
  }
  return false;
}

async function thoseThere(root: string, names: readonly string[]): Promise<string[]> {
  const there: string[] = [];
  for (const name of names) {
    const found = await lookAt(join(root, name));
    if (found?.isDirectory() === true || found?.isFile() === true) there.push(name);
  }
  return there;
}

async function lookAt(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch {
    return undefined;
  }
}

/** undefined for a name with a dot, which is a file's: an empty one would be read as a broken one by its owner. */
async function makeFolder(root: string, name: string): Promise<Stats | undefined> {
  if (name.includes('.')) return undefined;
  // Another process may be making it at this moment; the state afterwards counts.
  await mkdir(join(root, name), { mode: 0o700 }).catch(() => undefined);
  const made = await lookAt(join(root, name));
  if (made === undefined) throw new SandboxUnavailable('A private part of the workspace cannot be covered.');
  return made;
}

function assertTopName(name: string): void {
  if (name === '' || name === '.' || name === '..' || /[\0/\\,:]/u.test(name))
    throw new TypeError(`not a name at the top of a workspace: ${name}`);
}

/**
 * An ordinary user's worker shares its own id with the sandbox. A worker that is root must not: it takes the id that
 * the folder has, and gives a folder that is root's own to the tenant's id, once; after that whatever is made in it
 * gets the id of the folder it is in.
 */
async function findOwner({ root, stats, masked, tenantId }: OwnedFolder): Promise<Owner> {
  const own = process.getuid?.() ?? 0;
  if (own !== 0) return { uid: own, gid: process.getgid?.() ?? own };
  if (!isToBeHandedOver(stats)) return { uid: stats.uid, gid: stats.gid === 0 ? stats.uid : stats.gid };
  const folder = await open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const owner = ownerForTenant(tenantId);
  await handOver(folder, { owner, except: new Set(masked), depth: 0 });
  return owner;
}

interface OwnedFolder extends Pick<SandboxRequest, 'root' | 'masked' | 'tenantId'> {
  readonly stats: Stats;
}

const isToBeHandedOver = ({ uid }: Stats): boolean => uid === 0 || uid === FORMER_ID;

interface HandOver {
  readonly owner: Owner;
  readonly except: ReadonlySet<string>;
  readonly depth: number;
}

/**
 * What is inside first: when this is cut off, the folder is still root's, and the next sandbox begins again. Closes the
 * folder.
 */
async function handOver(folder: FileHandle, { owner, except, depth }: HandOver): Promise<void> {
  try {
    const path = `/proc/self/fd/${String(folder.fd)}`;
    for (const name of await readdir(path)) {
      if (!except.has(name)) await handOverName(`${path}/${name}`, owner, depth);
    }
    await folder.chown(owner.uid, owner.gid);
  } finally {
    await folder.close();
  }
}

/** The path leads through an open folder, so nothing that happens to names above can lead this astray. */
async function handOverName(path: string, owner: Owner, depth: number): Promise<void> {
  const found = await lookAt(path);
  if (found?.isDirectory() !== true) {
    if (found !== undefined && isToBeHandedOver(found) && found.nlink <= 1) {
      // A command of another turn may take the name away meanwhile.
      await lchown(path, owner.uid, owner.gid).catch((error: unknown) => {
        if (typeof error !== 'object' || error === null || !('code' in error) || error.code !== 'ENOENT') throw error;
      });
    }
    return;
  }
  if (depth >= handedOverDepthMax) return;
  const inner = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(() => undefined);
  if (inner !== undefined) await handOver(inner, { owner, except: new Set(), depth: depth + 1 });
}
