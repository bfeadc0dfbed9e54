import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AppError, limits, TenantId, TenantSettings } from '@concierge/contract';
import { FolderSync, isSystemError, removeFolderIn, walkTree, type TreeEntry } from '@concierge/files';
import { isPrivateName, markIncarnation, type TenantScope } from '@concierge/tenant';
import * as tar from 'tar';

/** Read and write for the owner of the deployment only: what tenants keep is private. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
const PERMISSIONS = 0o777;
/** How often an import looks whether the disk has room, and what it leaves free. */
const LOOK_EVERY_BYTES = 16 * 1024 * 1024;
const KEPT_FREE_BYTES = 256 * 1024 * 1024;
/**
 * The newest revision of each session is its view, which goes along; the older ones only serve crashed writers. What
 * keeps tenant.json safe is made again from it. Valid plain credentials have been sealed by then; invalid ones, copies
 * that an editor made of them, and what a crashed process left half done are left out.
 */
const LEFT_OUT =
  /^(?:(?:sessions\/\.revisions|settings\/(?!incarnation$|audit$|audit\/)[^/]+|tenant\.last-good\.json)(?:\/|$)|channels\/(?!channel_[a-z]\.)[^/])/u;
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
  /** Links, special files, files with a second name, and what is nested too deeply: an import would refuse them. */
  readonly leftOut: number;
  /** Files that lost bytes while they were read; zeros stand in their place. */
  readonly cutShort: number;
}

export interface TenantExport {
  /** The bytes of a `.tar.gz`, one entry at a time: its content is read when its bytes are asked for. */
  readonly bytes: AsyncIterable<Buffer>;
  /** As far as it has come. */
  readonly report: () => ExportReport;
}

/**
 * Everything of a tenant, under the tenant's id. Regular files only, found by a walk that follows no link whatever a
 * command of the tenant does meanwhile; suspend the tenant first when all of them are to be of the same moment.
 */
export async function exportTenant(scope: TenantScope): Promise<TenantExport> {
  await scope.channels.list();
  const counts = { files: 0, leftOut: 0, cutShort: 0 };
  const walk = walkTree(scope.root, {
    isOwn: isPrivateName,
    isWanted: (path) => !LEFT_OUT.test(path),
    onLeftOut: () => (counts.leftOut += 1),
    onCutShort: () => (counts.cutShort += 1),
  });
  const bytes = archive(scope.tenantId, walk, () => (counts.files += 1));
  return { bytes, report: () => ({ tenantId: scope.tenantId, ...counts }) };
}

/**
 * Writes what `begin` exports into a new file; what it came to.
 * @throws AppError conflict, when there is such a file: nothing is exported then
 */
export async function saveExport(file: string, begin: () => Promise<TenantExport>): Promise<ExportReport & { readonly bytes: number }> {
  if (await exists(file)) throw new AppError('conflict', `${file} exists already.`);
  const partial = `${file}.${randomBytes(4).toString('hex')}.partial`;
  try {
    const { bytes, report } = await begin();
    await pipeline(bytes, createWriteStream(partial, { flags: 'wx', mode: FILE_MODE, flush: true }));
    await rename(partial, file);
    return { ...report(), bytes: (await stat(file)).size };
  } finally {
    await rm(partial, { force: true });
  }
}

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
  /** The bytes of an archive of `exportTenant`. */
  readonly source: AsyncIterable<Uint8Array>;
  /** DATA_DIR/tenants */
  readonly tenantsFolder: string;
  /** Another id than the archive's; what is bound to the old one (see BOUND_TO_ID) then stays behind. */
  readonly newId: string | undefined;
}

/**
 * Unpacks an archive beside the tenants as it comes, and puts it in place in one step: whole or not at all.
 * @throws AppError invalid_request (no such archive, or one with anything but files and folders of one tenant),
 * too_large, overloaded (the disk has no room), conflict (the id is taken)
 */
export async function importTenant({ source, tenantsFolder, newId }: ImportOptions): Promise<ArchiveReport> {
  const name = `.new-${randomBytes(12).toString('hex')}`;
  const building = join(tenantsFolder, name);
  await mkdir(building, { recursive: true, mode: FOLDER_MODE });
  try {
    const entries = new ArchiveEntries(newId);
    await unpack(source, { building, entries });
    const { tenantId, oldId, files } = entries.report();
    await assertSettings(building);
    // Ids of turns that the old tenant's requests made are not the new one's.
    if (tenantId !== oldId) await markIncarnation(building);
    if (await exists(join(tenantsFolder, tenantId))) throw new AppError('conflict', `The tenant ${tenantId} exists already.`);
    await rename(building, join(tenantsFolder, tenantId));
    await new FolderSync().sync(tenantsFolder);
    return { tenantId, files };
  } finally {
    await removeFolderIn(tenantsFolder, name);
  }
}

interface Unpacking {
  readonly building: string;
  readonly entries: ArchiveEntries;
}

async function unpack(source: AsyncIterable<Uint8Array>, { building, entries }: Unpacking): Promise<void> {
  const extract = tar.extract({
    cwd: building,
    strip: 1,
    strict: true,
    preserveOwner: false,
    fmode: FILE_MODE,
    dmode: FOLDER_MODE,
    filter: (path, entry) => entries.take(path, entry),
  });
  try {
    await pipeline(limitSource(source, { building, entries }), extract);
  } catch (error) {
    if (error instanceof AppError) throw error;
    if (isSystemError(error, 'ENOSPC', 'EDQUOT')) throw noRoom(error);
    if (isSystemError(error, 'EACCES', 'EPERM', 'EROFS', 'EIO', 'EMFILE', 'ENOENT')) throw error;
    throw new AppError('invalid_request', 'This is not an archive that can be read.', { cause: error });
  }
  entries.assertGood();
}

/** The source for as long as it is small enough, what is in it is good, and the disk has room. */
async function* limitSource(source: AsyncIterable<Uint8Array>, { building, entries }: Unpacking): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let sinceLook = Infinity;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > limits.archiveMaxBytes) throw new AppError('too_large', 'The archive is too large.');
    entries.assertGood();
    sinceLook += chunk.length;
    if (sinceLook > LOOK_EVERY_BYTES) {
      sinceLook = 0;
      const { bavail, bsize } = await statfs(building);
      if (bavail * bsize < KEPT_FREE_BYTES) throw noRoom();
    }
    yield chunk;
  }
}

function noRoom(cause?: unknown): AppError {
  return new AppError('overloaded', 'The disk has no room for what is in the archive.', { cause });
}

/** What an archive was found to have: nothing but files and folders under one tenant's id. */
class ArchiveEntries {
  readonly #newId: string | undefined;
  #oldId: string | undefined;
  #problem: AppError | undefined;
  #files = 0;
  #count = 0;
  #bytes = 0;

  constructor(newId: string | undefined) {
    this.#newId = newId;
  }

  /** Whether it is to be unpacked. */
  take(path: string, entry: unknown): boolean {
    if (this.#problem !== undefined) return false;
    this.#problem = this.#findProblem(path, entry);
    return this.#problem === undefined && !(this.#isMoved && BOUND_TO_ID.test(path));
  }

  /** @throws AppError invalid_request, too_large */
  assertGood(): void {
    if (this.#problem !== undefined) throw this.#problem;
  }

  /** @throws AppError invalid_request */
  report(): ArchiveReport & { readonly oldId: string } {
    if (this.#oldId === undefined) throw new AppError('invalid_request', 'This is not the archive of one tenant.');
    return { tenantId: parseId(this.#newId ?? this.#oldId), oldId: this.#oldId, files: this.#files };
  }

  get #isMoved(): boolean {
    return this.#newId !== undefined && this.#newId !== this.#oldId;
  }

  #findProblem(path: string, entry: unknown): AppError | undefined {
    const parts = path.replace(/\/$/u, '').split('/');
    const isPlain = entry instanceof tar.ReadEntry && (entry.type === 'File' || entry.type === 'Directory');
    if (!isPlain || parts.some((part) => part === '' || part === '.' || part === '..'))
      return new AppError('invalid_request', `The archive has an entry that no export makes: ${path}.`);
    this.#oldId ??= parts[0];
    if (parts[0] !== this.#oldId) return new AppError('invalid_request', 'This is not the archive of one tenant.');
    this.#count += 1;
    this.#bytes += entry.size;
    if (entry.type === 'File') this.#files += 1;
    const { archiveContentMaxBytes, archiveEntriesMax } = limits;
    const isTooLarge = this.#bytes > archiveContentMaxBytes || this.#count > archiveEntriesMax;
    return isTooLarge ? new AppError('too_large', 'What is in the archive is too large.') : undefined;
  }
}

function parseId(id: string): string {
  const parsed = TenantId.safeParse(id);
  if (parsed.success) return parsed.data;
  throw new AppError('invalid_request', `A tenant id ${parsed.error.issues[0]?.message ?? 'has another form'}.`);
}

async function assertSettings(folder: string): Promise<void> {
  try {
    TenantSettings.parse(JSON.parse(await readFile(join(folder, 'tenant.json'), 'utf8')));
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

/** What does not work after an import as it did before, or works twice. */
export async function listImportNotes(scope: TenantScope, newId: string | undefined): Promise<string[]> {
  const notes: string[] = [];
  const broken = (await scope.channels.list()).filter(({ state }) => state === 'broken').map(({ app }) => app);
  const { schedules } = await scope.schedules.list();
  const toWebhooks = schedules.filter(({ deliver }) => deliver !== null && 'webhook' in deliver).length;
  const active = schedules.filter(({ enabled }) => enabled).length;
  if (newId !== undefined) {
    notes.push(
      'Channels are not connected, and messages that waited to be sent and event endpoints stayed behind: all of them belong to the other id. Connect the channels anew. The web widget, if there was one, is to be set up anew, too.',
    );
    if (active > 0)
      notes.push(
        `${String(active)} schedules came along and are enabled, as those of the other tenant are: see concierge cron list ${scope.tenantId}.`,
      );
  }
  if (newId !== undefined && toWebhooks > 0)
    notes.push(
      `${String(toWebhooks)} schedules send their replies to webhooks: make event endpoints with these URLs (concierge event-endpoint add).`,
    );
  if (broken.length > 0)
    notes.push(
      `The credentials of ${broken.join(', ')} cannot be opened with this SECRETS_KEY: use the one they were sealed with, or connect anew.`,
    );
  return notes;
}
