import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, limits, TenantId, TenantSettings, toStoredSchema } from '@concierge/contract';
import { FolderSync, removeFolderIn, walkTree, type TreeEntry } from '@concierge/files';
import { isPrivateName, markIncarnation, type TenantScope } from '@concierge/tenant';
import { exists, FOLDER_MODE, packEntries, unpackArchive, type Streamed } from './tar-archive.ts';

/**
 * The newest revision of each session is its view, which goes along; the older ones only serve crashed writers. What
 * keeps tenant.json safe is made again from it. Valid plain credentials have been sealed by then; invalid ones, copies
 * that an editor made of them, and what a crashed process left half done are left out.
 */
const LEFT_OUT =
  /^(?:(?:sessions\/\.revisions|settings\/(?!incarnation$|(?:audit|history|model-keys)(?:\/|$))[^/]+|tenant\.last-good\.json)(?:\/|$)|channels\/(?!channel_[a-z]\.)[^/])/u;
/**
 * What is useless or harmful under another id: keys (the widget's, too), unanswered turns and the mark in settings/
 * name the old id, credentials of channels, keys for model providers and secrets of event endpoints are sealed for it,
 * and a message or an event that waits to be sent would be sent by both. Earlier versions of files go with the files.
 */
const BOUND_TO_ID = /^[^/]+\/(?:keys|inbox|channels|outbox|events|widget|settings(?!\/history\/)|handoffs\/calls)\//u;

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

export type TenantExport = Streamed<ExportReport>;

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
  const bytes = packEntries(inFolder(scope.tenantId, walk, () => (counts.files += 1)));
  return { bytes, report: () => ({ tenantId: scope.tenantId, ...counts }) };
}

/** Under the tenant's id. */
async function* inFolder(tenantId: string, walk: AsyncIterable<TreeEntry>, onFile: () => void): AsyncGenerator<TreeEntry> {
  yield { path: tenantId, mode: FOLDER_MODE, mtime: new Date(), content: undefined };
  for await (const entry of walk) {
    if (entry.content !== undefined) onFile();
    yield { ...entry, path: `${tenantId}/${entry.path}` };
  }
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
    let oldId: string | undefined;
    const isMoved = (): boolean => newId !== undefined && newId !== oldId;
    const rules = {
      archiveMaxBytes: limits.archiveMaxBytes,
      contentMaxBytes: limits.archiveContentMaxBytes,
      entriesMax: limits.archiveEntriesMax,
      findProblem: ([top]: readonly string[]) => {
        oldId ??= top;
        return top === oldId ? undefined : 'This is not the archive of one tenant.';
      },
      isWanted: (path: string) => !(isMoved() && BOUND_TO_ID.test(path)),
    };
    const files = await unpackArchive({ source, folder: building, strip: 1, rules });
    const tenantId = parseId(newId ?? oldId);
    await assertSettings(building);
    // Ids of turns that the old tenant's requests made are not the new one's.
    if (isMoved()) await markIncarnation(building);
    if (await exists(join(tenantsFolder, tenantId))) throw new AppError('conflict', `The tenant ${tenantId} exists already.`);
    await rename(building, join(tenantsFolder, tenantId));
    await new FolderSync().sync(tenantsFolder);
    return { tenantId, files };
  } finally {
    await removeFolderIn(tenantsFolder, name);
  }
}

function parseId(id: string | undefined): string {
  if (id === undefined) throw new AppError('invalid_request', 'This is not the archive of one tenant.');
  const parsed = TenantId.safeParse(id);
  if (parsed.success) return parsed.data;
  throw new AppError('invalid_request', `A tenant id ${parsed.error.issues[0]?.message ?? 'has another form'}.`);
}

async function assertSettings(folder: string): Promise<void> {
  try {
    toStoredSchema(TenantSettings).parse(JSON.parse(await readFile(join(folder, 'tenant.json'), 'utf8')));
  } catch (error) {
    throw new AppError('invalid_request', 'The archive has no usable tenant.json.', { cause: error });
  }
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
      'Channels are not connected, and messages that waited to be sent and event endpoints stayed behind: all of them belong to the other id. Connect the channels anew. The web widget, if there was one, is to be set up anew, too, and own keys for model providers are to be entered again.',
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
  const lost = (await scope.modelKeys.list()).filter(({ problem }) => problem !== null).map(({ provider }) => provider);
  if (lost.length > 0)
    notes.push(
      `The own keys for ${lost.join(', ')} cannot be opened with this SECRETS_KEY: use the one they were sealed with, or enter them again.`,
    );
  if (broken.length > 0)
    notes.push(
      `The credentials of ${broken.join(', ')} cannot be opened with this SECRETS_KEY: use the one they were sealed with, or connect anew.`,
    );
  return notes;
}
