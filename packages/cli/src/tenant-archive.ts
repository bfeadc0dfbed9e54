import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { AppError, TenantId, TenantSettings } from '@concierge/contract';
import { FolderSync, type TenantScope } from '@concierge/tenant';
import * as tar from 'tar';

/** Read and write for the owner of the deployment, nobody else: what tenants keep is private. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
/**
 * The newest revision of each session is its view, which goes along; the older ones only serve crashed writers. What keeps tenant.json safe is made
 * again from it. Plain credentials that are right have been sealed by then; the others, copies that an editor made of them, and what a process that died
 * left half done are nobody's to carry around.
 */
const LEFT_OUT = /^[^/]+\/(?:(?:sessions\/\.revisions|settings|tenant\.last-good\.json)(?:\/|$)|channels\/(?!channel_[a-d]\.)[^/])/u;
/**
 * Of no use under another id, or of harm: keys (the widget's, too) and unanswered turns name the old one, credentials of channels and secrets of event
 * endpoints are sealed for it, and a message or an event that waits to be sent would be sent by both.
 */
const BOUND_TO_ID = /^[^/]+\/(?:keys|inbox|channels|outbox|events|widget|handoffs\/calls)\//u;

export interface ArchiveReport {
  readonly tenantId: string;
  readonly files: number;
}

/**
 * Writes everything of a tenant into a new `.tar.gz`, under the tenant's id. Regular files only. Each file is whole, as it was at one
 * moment; suspend the tenant first when all of them are to be of the same one.
 * @throws AppError conflict, when there is such a file
 */
export async function exportTenant(scope: TenantScope, file: string): Promise<ArchiveReport & { readonly bytes: number }> {
  if (await exists(file)) throw new AppError('conflict', `${file} exists already.`);
  await scope.channels.list();
  const partial = `${file}.${randomBytes(4).toString('hex')}.partial`;
  let files = 0;
  try {
    await tar.create(
      {
        file: partial,
        gzip: true,
        mode: FILE_MODE,
        cwd: join(scope.root, '..'),
        filter: (path, entry) => {
          const wanted = !LEFT_OUT.test(path) && (isFolderStat(entry) || isFileStat(entry));
          if (wanted && isFileStat(entry)) files += 1;
          return wanted;
        },
      },
      [basename(scope.root)],
    );
    await rename(partial, file);
  } finally {
    await rm(partial, { force: true });
  }
  return { tenantId: scope.accountId, files, bytes: (await stat(file)).size };
}

type FilterEntry = Stats | tar.ReadEntry;
const isFileStat = (entry: FilterEntry): boolean => 'isFile' in entry && entry.isFile();
const isFolderStat = (entry: FilterEntry): boolean => 'isDirectory' in entry && entry.isDirectory();

export interface ImportOptions {
  readonly file: string;
  /** DATA_DIR/tenants */
  readonly tenantsFolder: string;
  /** Another id than the archive's; what is bound to the old one (see BOUND_TO_ID) then stays behind. */
  readonly newId: string | undefined;
}

/**
 * Unpacks an archive of `exportTenant` beside the tenants and puts it in place in one step: whole or not at all.
 * @throws AppError invalid_request (no such archive, or one with anything but files and folders of one tenant), conflict (the id is taken)
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
    if (await exists(join(tenantsFolder, tenantId.data))) throw new AppError('conflict', `The tenant ${tenantId.data} exists already.`);
    await rename(building, join(tenantsFolder, tenantId.data));
    await new FolderSync().sync(tenantsFolder);
  } finally {
    await rm(building, { recursive: true, force: true });
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
