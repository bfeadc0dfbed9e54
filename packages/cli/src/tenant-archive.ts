import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AppError, TenantId, TenantSettings, toStoredSchema } from '@concierge/contract';
import { FolderSync, removeFolderIn, walkTree, type TreeEntry } from '@concierge/files';
import { isPrivateName, markIncarnation, type TenantScope } from '@concierge/tenant';
import * as tar from 'tar';

/** Read and write for the owner of the deployment only: what tenants keep is private. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
const PERMISSIONS = 0o777;
/**
 * The newest revision of each session is its view, which goes along; the older ones only serve crashed writers. What
 * keeps tenant.json safe is made again from it. Valid plain credentials have been sealed by then; invalid ones, copies
 * that an editor made of them, and what a crashed process left half done are left out.
 */
const LEFT_OUT =
  /^(?:(?:sessions\/\.revisions|settings\/(?!incarnation$)[^/]+|tenant\.last-good\.json)(?:\/|$)|channels\/(?!channel_[a-z]\.)[^/])/u;
/**
 * What is useless or harmful under another id: keys (the widget's, too), unanswered turns and the mark in settings/
 * name the old id, credentials of channels and secrets of event endpoints are sealed for it, and a message or an event
 * that waits to be sent would be sent by both.
 */
const BOUND_TO_ID = /^[^/]+\/(?:keys|inbox|channels|outbox|events|widget|settings|handoffs\/calls)\//u;

export interface ArchiveReport {
  readonly tenantId: string;
  readonly files: number;
}

export interface ExportReport extends ArchiveReport {
  readonly bytes: number;
  /** Links, special files, files with a second name, and what is nested too deeply: an import would refuse them. */
  readonly leftOut: number;
  /** Files that lost bytes while they were read; zeros stand in their place. */
  readonly cutShort: number;
}

/**
 * Writes everything of a tenant into a new `.tar.gz`, under the tenant's id. Regular files only, found by a walk that
 * follows no link whatever a command of the tenant does meanwhile; suspend the tenant first when all of them are to be
 * of the same moment.
 * @throws AppError conflict, when there is such a file
 */
export async function exportTenant(scope: TenantScope, file: string): Promise<ExportReport> {
  if (await exists(file)) throw new AppError('conflict', `${file} exists already.`);
  await scope.channels.list();
  const partial = `${file}.${randomBytes(4).toString('hex')}.partial`;
  const counts = { files: 0, leftOut: 0, cutShort: 0 };
  const walk = walkTree(scope.root, {
    isOwn: isPrivateName,
    isWanted: (path) => !LEFT_OUT.test(path),
    onLeftOut: () => (counts.leftOut += 1),
    onCutShort: () => (counts.cutShort += 1),
  });
  try {
    await pipeline(
      archive(scope.tenantId, walk, () => (counts.files += 1)),
      createWriteStream(partial, { flags: 'wx', mode: FILE_MODE, flush: true }),
    );
    await rename(partial, file);
  } finally {
    await rm(partial, { force: true });
  }
  return { tenantId: scope.tenantId, ...counts, bytes: (await stat(file)).size };
}

/** The bytes of the archive, one entry at a time: its content is read when its bytes are asked for. */
async function* archive(tenantId: string, walk: AsyncIterable<TreeEntry>, onFile: () => void): AsyncGenerator<Buffer> {
  const pack = new tar.Pack({ gzip: true });
  const fill = async (): Promise<void> => {
    await add(pack, { path: `${tenantId}/`, mode: FOLDER_MODE, mtime: new Date(), content: undefined });
    for await (const entry of walk) {
      if (entry.content !== undefined) onFile();
      await add(pack, { ...entry, path: `${tenantId}/${entry.path}${entry.content === undefined ? '/' : ''}` });
    }
    pack.end();
  };
  const filled = fill().catch((error: unknown) => void pack.emit('error', error));
  yield* pack;
  await filled;
}

/** Resolves when the entry is in the archive. */
async function add(pack: tar.Pack, { path, mode, mtime, content }: TreeEntry): Promise<void> {
  const type = content === undefined ? 'Directory' : 'File';
  const entry = new tar.ReadEntry(new tar.Header({ path, type, mode: mode & PERMISSIONS, mtime, size: content?.size ?? 0 }));
  const written = once(entry, 'end');
  pack.add(entry);
  for await (const chunk of content?.chunks ?? []) {
    if (!entry.write(chunk)) await once(entry, 'drain');
  }
  entry.end();
  await written;
}

export interface ImportOptions {
  readonly file: string;
  /** DATA_DIR/tenants */
  readonly tenantsFolder: string;
  /** Another id than the archive's; what is bound to the old one (see BOUND_TO_ID) then stays behind. */
  readonly newId: string | undefined;
}

/**
 * Unpacks an archive of `exportTenant` beside the tenants and puts it in place in one step: whole or not at all.
 * @throws AppError invalid_request (no such archive, or one with anything but files and folders of one tenant),
 * conflict (the id is taken)
 */
export async function importTenant({ file, tenantsFolder, newId }: ImportOptions): Promise<ArchiveReport> {
  const { tenantId: oldId, files } = await inspect(file);
  const tenantId = TenantId.safeParse(newId ?? oldId);
  if (!tenantId.success) throw new AppError('invalid_request', `A tenant id ${tenantId.error.issues[0]?.message ?? 'has another form'}.`);
  const moved = tenantId.data !== oldId;
  const building = join(tenantsFolder, `.new-${tenantId.data}-${randomBytes(6).toString('hex')}`);
  await mkdir(building, { recursive: true, mode: FOLDER_MODE });
  try {
    const filter = (path: string): boolean => !(moved && BOUND_TO_ID.test(path));
    await tar.extract({ file, cwd: building, strip: 1, strict: true, preserveOwner: false, fmode: FILE_MODE, dmode: FOLDER_MODE, filter });
    await assertSettings(building);
    // Ids of turns that the old tenant's requests made are not the new one's.
    if (moved) await markIncarnation(building);
    if (await exists(join(tenantsFolder, tenantId.data))) throw new AppError('conflict', `The tenant ${tenantId.data} exists already.`);
    await rename(building, join(tenantsFolder, tenantId.data));
    await new FolderSync().sync(tenantsFolder);
  } finally {
    await removeFolderIn(tenantsFolder, basename(building));
  }
  return { tenantId: tenantId.data, files };
}

/** Before anything is written: what is in it, and that it is nothing but files and folders under one tenant's id. */
async function inspect(file: string): Promise<ArchiveReport> {
  const tops = new Set<string>();
  const refused: string[] = [];
  let files = 0;
  const look = (entry: tar.ReadEntry): void => {
    const path = entry.path.replace(/\/$/u, '');
    const parts = path.split('/');
    tops.add(parts[0] ?? '');
    if ((entry.type !== 'File' && entry.type !== 'Directory') || parts.some((part) => part === '' || part === '.' || part === '..'))
      refused.push(path);
    if (entry.type === 'File') files += 1;
  };
  await tar.list({ file, strict: true, onReadEntry: look }).catch((error: unknown) => {
    throw new AppError('invalid_request', `${file} is not an archive that can be read.`, { cause: error });
  });
  const [tenantId, ...others] = tops;
  if (refused.length > 0) throw new AppError('invalid_request', `${file} has an entry that no export makes: ${refused[0] ?? ''}.`);
  if (tenantId === undefined || others.length > 0) throw new AppError('invalid_request', `${file} is not the archive of one tenant.`);
  return { tenantId, files };
}

async function assertSettings(folder: string): Promise<void> {
  try {
    toStoredSchema(TenantSettings).parse(JSON.parse(await readFile(join(folder, 'tenant.json'), 'utf8')));
  } catch (error) {
    throw new AppError('invalid_request', 'The archive has no usable tenant.json.', { cause: error });
  }
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
