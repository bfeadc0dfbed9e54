import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { AppError, limits, TenantId, tenantIdPattern, type Embedder, type TenantPlan, type TenantSettings } from '@concierge/contract';
import type { RecordChange, TellRecordChange } from '@concierge/files';
import { FolderSync, isSystemError, lstatIfThere, namesIn, RecordChanges, removeFolderIn, StatCache } from '@concierge/files';
import type { IndexStore } from '@concierge/index';
import { background, type Log } from '@concierge/runtime';
import { LRUCache } from 'lru-cache';
import type { z } from 'zod';
import { AuditLog } from './audit/audit-log.ts';
import { EventFiles, waitingFolder } from './events/event-files.ts';
import { decodeKey, type KeyClaims, Keys, type KeyRecord, type KeyRecordCache } from './keys/keys.ts';
import { callsFolder } from './contacts/handoffs.ts';
import { erasuresFolder } from './erasure/erasures.ts';
import { Inbox, type LoggedTurns } from './inbox/inbox.ts';
import { Outbox, type WakeOutbox } from './outbox/outbox.ts';
import { SessionCache } from './sessions/session-store.ts';
import { mayAskForHeartbeat } from './settings/settings-files.ts';
import { writeStarter } from './starter.ts';
import type { Publications } from './sessions/publications.ts';
import { TenantScope, type TellChange } from './tenant-scope.ts';
import { tenantOfWidgetKey, type OpenWidget } from './widget/widget-store.ts';
import { Generations } from './inbox/lane-order.ts';
import { fileMark, markSchedules, scheduleIdsIn } from './schedules/schedules.ts';

const openMaxDefault = 10_000;
/** A few folders of each of ten thousand tenants. */
const listedMax = 100_000;
const cachedKeysMax = 10_000;
/**
 * Where the write-ahead logs of processes lie: inside the folder that is backed up, and outside of every tenant's own,
 * which are what sandboxes, tools and archives reach.
 */
export function toLogsFolder(dataDir: string): string {
  return join(dataDir, 'tenants', '.wal');
}

/** A tenant's folder between its deletion and its end. */
const removedPrefix = '.removed-';
const removedBytes = 6;
// bounded-expression: a constant, matched with the name of a folder
const removedPattern = new RegExp(`^\\.removed-(?<id>.+)-[0-9a-f]{${String(2 * removedBytes)}}$`, 'u');

export interface TenantsOptions {
  readonly dataDir: string;
  readonly index: IndexStore;
  /** KEY_SECRET: signs API keys. */
  readonly keySecret: string;
  /** SECRETS_KEY: encrypts credentials. Without it none can be kept or used. */
  readonly secretsKey?: string | undefined;
  /** Makes memory found by meaning, too. */
  readonly embedder?: Embedder | undefined;
  /**
   * Called when something is to be sent on a channel; without it the delivery reconciler finds it a few seconds later.
   */
  readonly wakeOutbox?: WakeOutbox | undefined;
  /** Called when something of a tenant has changed that pages show. */
  readonly tell?: TellChange | undefined;
  /** Tells all processes of a record that this one has changed: what they do with it is `hearRecordChange`. */
  readonly tellRecordChange?: TellRecordChange | undefined;
  /** Accepted turns that have no inbox file yet. */
  readonly logged?: LoggedTurns | undefined;
  /** Of this process: what is in it need not be synced at once. */
  readonly wal?: Publications | undefined;
  /** Tenants that stay open while no caller has them. */
  readonly openMax?: number | undefined;
  readonly log: Log;
}

/** Drops what is kept of a deleted tenant elsewhere than in its files and the index. */
export type ForgetTenant = (tenantId: string) => Promise<void>;

const forgetNothing: ForgetTenant = async () => Promise.resolve();

export interface Authenticated {
  readonly scope: TenantScope;
  /** The key's record: its scopes are what the caller may do. */
  readonly key: KeyRecord;
  /** As they are now. */
  readonly settings: TenantSettings;
}

/**
 * Every tenant of this deployment, DATA_DIR/tenants/<id>. Hands out scopes; has no way to look into one from outside.
 */
export class Tenants {
  readonly logsFolder: string;
  /** What operators did: beside the tenants' own folders, where none of them reaches it, and a backup contains it. */
  readonly audit: AuditLog;
  readonly #options: TenantsOptions;
  readonly #folder: string;
  readonly #folders = new FolderSync();
  readonly #sessionCache = new SessionCache();
  readonly #generations: Generations;
  readonly #keyRecords: KeyRecordCache = new LRUCache({ max: cachedKeysMax, ttl: limits.keyCacheMs });
  /** Claims of keys whose signature was verified; the record is looked at each time. */
  readonly #claims = new LRUCache<string, KeyClaims>({ max: cachedKeysMax });
  readonly #scopes: OpenScopes;
  readonly #recordChanges: RecordChanges;
  readonly #swept = new Set<string>();
  readonly #ids = new StatCache<readonly string[]>(1);
  /**
   * What reconcilers look at again and again, for every tenant: in place of a directory read, one system call while
   * nothing has changed.
   */
  readonly #listed = new StatCache<readonly string[]>(listedMax);

  constructor(options: TenantsOptions) {
    this.#options = options;
    this.#scopes = new OpenScopes(options.openMax ?? openMaxDefault);
    this.#folder = join(options.dataDir, 'tenants');
    this.#recordChanges = new RecordChanges({ root: this.#folder, tell: options.tellRecordChange });
    this.logsFolder = toLogsFolder(options.dataDir);
    const auditFolder = join(this.#folder, '.audit');
    this.audit = new AuditLog({ folder: auditFolder, store: auditFolder, folders: this.#folders, log: options.log });
    this.#generations = new Generations({ folder: join(this.#folder, '.generations'), folders: this.#folders });
  }

  /**
   * A new tenant, whole or not at all. It has no key yet.
   * @throws AppError conflict, invalid_request; overloaded, when the lists of an earlier one cannot be dropped
   */
  async create(id: string, { plan = 'standard' }: { readonly plan?: z.infer<typeof TenantPlan> } = {}): Promise<TenantScope> {
    const tenantId = TenantId.safeParse(id);
    if (!tenantId.success) throw new AppError('invalid_request', `A tenant id ${tenantId.error.issues[0]?.message ?? 'has another form'}.`);
    const building = join(this.#folder, `.new-${id}-${randomBytes(6).toString('hex')}`);
    await mkdir(building, { recursive: true });
    try {
      await this.#dropRemoved(id);
      await writeStarter(building, plan);
      // Fails when there is such a folder, unless it is an empty one.
      await rename(building, this.#toTenantRoot(id));
    } catch (error) {
      await removeFolderIn(this.#folder, basename(building));
      if (isSystemError(error, 'ENOTEMPTY', 'EEXIST', 'EPERM'))
        throw new AppError('conflict', `The tenant ${id} exists already.`, { cause: error });
      throw error;
    }
    await this.#folders.sync(this.#folder);
    return this.open(id);
  }

  /** Ids, sorted. One system call when no tenant came or went. `isSure`: read, whatever that call shows. */
  async list({ isSure = false } = {}): Promise<readonly string[]> {
    if (isSure) return readTenantIds(this.#folder);
    return (await this.#ids.get(this.#folder, async () => readTenantIds(this.#folder))) ?? [];
  }

  /** What is accepted and not yet answered, for the reconciler: without opening the tenant. As `list`. */
  async inboxTurnIds(tenantId: string, { isSure = false } = {}): Promise<readonly string[]> {
    const { log } = this.#options;
    const folder = join(this.#toTenantRoot(tenantId), 'inbox');
    const read = async (): Promise<string[]> => new Inbox({ folder, folders: this.#folders, log }).filedTurnIds();
    return isSure ? read() : ((await this.#listed.get(folder, read)) ?? []);
  }

  /**
   * A number above every one that was drawn before, in any process: one for each time that Redis is filled from the
   * inboxes.
   */
  async nextGeneration(): Promise<number> {
    return await this.#generations.next();
  }

  /** Conversations in which something is to be sent, for the delivery reconciler: without opening the tenant. */
  async outboxLanes(tenantId: string): Promise<readonly string[]> {
    const { log } = this.#options;
    const folder = join(this.#toTenantRoot(tenantId), 'outbox');
    const read = async (): Promise<string[]> => new Outbox({ tenantId, folder, folders: this.#folders, log }).lanes();
    return (await this.#listed.get(folder, read)) ?? [];
  }

  /** Events that are still to be sent, for the reconciler: without opening the tenant. */
  async waitingEventIds(tenantId: string): Promise<readonly string[]> {
    const folder = waitingFolder(join(this.#toTenantRoot(tenantId), 'events'));
    // Only an empty folder is known by its own times: events lie in folders of their hours.
    const hours = await this.#listed.get(folder, async () => namesIn(folder));
    return hours === undefined || hours.length === 0 ? [] : this.#eventFiles(tenantId).waitingIds();
  }

  /** Clears away events that were kept long enough, without opening the tenant. */
  async sweepEvents(tenantId: string): Promise<void> {
    await this.#eventFiles(tenantId).sweep();
  }

  /** Ids of handoffs whose notifications are not all sent, for the handoff reconciler: without opening the tenant. */
  async pendingHandoffs(tenantId: string): Promise<readonly string[]> {
    const folder = callsFolder(join(this.#toTenantRoot(tenantId), 'handoffs'));
    const read = async (): Promise<string[]> => (await namesIn(folder)).filter((file) => file.startsWith('h_'));
    return (await this.#listed.get(folder, read)) ?? [];
  }

  /** Erasures of contacts that are under way: without opening the tenant. */
  async runningErasures(tenantId: string): Promise<readonly string[]> {
    const folder = erasuresFolder(join(this.#toTenantRoot(tenantId), 'settings'));
    const read = async (): Promise<string[]> => (await namesIn(folder)).filter((file) => /^[0-9a-f]{32}\.json$/u.test(file));
    return ((await this.#listed.get(folder, read)) ?? []).map((file) => file.slice(0, -'.json'.length));
  }

  /** Conversations that were ever handed to staff, for the process that counts those that are: without opening it. */
  async handoffSessions(tenantId: string): Promise<readonly string[]> {
    const folder = join(this.#toTenantRoot(tenantId), 'handoffs');
    const read = async (): Promise<string[]> => (await namesIn(folder)).filter((file) => /^[0-9a-f]{32}\.json$/u.test(file));
    return (await this.#listed.get(folder, read)) ?? [];
  }

  /**
   * For the process that fires schedules: ids of the tenant's schedules, each with what changes when its file or its
   * history does. Opens nothing.
   */
  async scheduleVersions(tenantId: string): Promise<Map<string, string>> {
    const folder = join(this.#toTenantRoot(tenantId), 'cron');
    return await markSchedules(folder, (await this.#listed.get(folder, async () => scheduleIdsIn(folder))) ?? []);
  }

  /** Another one after each change of tenant.json. */
  async settingsVersion(tenantId: string): Promise<string> {
    return await fileMark(join(this.#toTenantRoot(tenantId), 'tenant.json'));
  }

  /** False for a tenant without a heartbeat, most often: without opening it. */
  async mayAskForHeartbeat(tenantId: string): Promise<boolean> {
    return await mayAskForHeartbeat(this.#toTenantRoot(tenantId));
  }

  /**
   * For callers that know the tenant without a key: workers, schedules, webhooks, operators.
   * @throws AppError not_found
   */
  async open(tenantId: string): Promise<TenantScope> {
    const scope = await this.find(tenantId);
    if (scope === undefined) throw new AppError('not_found', 'There is no such tenant.');
    return scope;
  }

  /**
   * As `open`; undefined when there is no such tenant: what names it may have outlived it. A known tenant is looked for
   * as well: another process may have deleted it, and a caller cannot learn from the time of an answer which tenants
   * there are.
   */
  async find(tenantId: string): Promise<TenantScope | undefined> {
    const isThere = tenantIdPattern.test(tenantId) && (await lstatIfThere(this.#toTenantRoot(tenantId)))?.isDirectory() === true;
    if (!isThere) {
      this.#scopes.delete(tenantId);
      return undefined;
    }
    // Another caller may have been here while this one looked: a tenant has one scope in a process, which holds its
    // locks.
    return this.#scopes.get(tenantId) ?? this.#scopes.add(this.#newScope(tenantId));
  }

  /**
   * Finds the owner of this key. The signature rejects keys that were not made here; the key's record decides.
   * @throws AppError missing_key, invalid_key, revoked_key, tenant_suspended
   */
  async authenticate(rawKey: string): Promise<Authenticated> {
    if (rawKey === '') throw new AppError('missing_key');
    const claims = this.#readClaims(rawKey);
    if (claims === undefined) throw new AppError('invalid_key');
    // The record first: whether the tenant exists shows in nothing but the record, and costs the same work.
    const key = await (this.#scopes.get(claims.accountId)?.keys ?? this.#newKeys(claims.accountId)).verify(rawKey, claims);
    const scope = await this.open(claims.accountId);
    const settings = await scope.settings();
    if (settings.suspended === true) throw new AppError('tenant_suspended');
    this.#sweepOnce(scope);
    return { scope, key, settings };
  }

  /**
   * Finds the tenant whose widget has this publishable key. An unknown key, one of no tenant, and one of a widget that
   * is switched off are the same.
   * @throws AppError invalid_key
   */
  async openWidget(key: string): Promise<{ readonly scope: TenantScope; readonly widget: OpenWidget }> {
    const tenantId = tenantOfWidgetKey(key);
    const scope = tenantId === undefined ? undefined : await this.find(tenantId);
    const widget = await scope?.widget.open(key);
    if (scope === undefined || widget === undefined) throw new AppError('invalid_key', 'The publishable key is not valid.');
    this.#sweepOnce(scope);
    return { scope, widget };
  }

  /**
   * A suspended tenant's keys are refused everywhere, with `tenant_suspended`; its accepted turns wait.
   * @throws AppError not_found, conflict
   */
  async setSuspended(id: string, suspended: boolean): Promise<void> {
    const scope = await this.open(id);
    await scope.updateSettings({ suspended: suspended ? true : null });
  }

  /**
   * Everything of the tenant goes: its name in one step, then what others keep of it (`forget`), its part of the index
   * and its files. What a crash leaves, `sweepRemoved` finishes. Turns and sandboxes are the caller's to stop first
   * (`removeTenant` of packages/turn): what they still write is lost.
   * @throws AppError not_found; conflict, when its files are written as fast as they are removed
   */
  async delete(id: string, forget: ForgetTenant = forgetNothing): Promise<void> {
    await this.open(id);
    const removed = `${removedPrefix}${id}-${randomBytes(removedBytes).toString('hex')}`;
    await rename(this.#toTenantRoot(id), join(this.#folder, removed));
    await this.#folders.sync(this.#folder);
    this.#scopes.delete(id);
    this.#swept.delete(id);
    await forget(id);
    await this.#options.index.drop(id);
    await removeFolderIn(this.#folder, removed);
  }

  /** Another process has changed a record: whatever this machine's mount shows, the one of before is not used again. */
  hearRecordChange(change: RecordChange): void {
    this.#keyRecords.delete(this.#recordChanges.hear(change));
  }

  /** Finishes deletions that were cut off; how many. One directory read where there are none. */
  async sweepRemoved(forget: ForgetTenant = forgetNothing): Promise<number> {
    let swept = 0;
    for (const name of await namesIn(this.#folder)) {
      const id = removedPattern.exec(name)?.groups?.['id'];
      if (id === undefined || !tenantIdPattern.test(id)) continue;
      // What is known by this name is another tenant's by now, if there is one.
      if ((await this.find(id)) === undefined) {
        await forget(id);
        await this.#options.index.drop(id);
      }
      await removeFolderIn(this.#folder, name);
      swept += 1;
    }
    return swept;
  }

  /** The deletion of an earlier tenant of this name may be under way, or cut off: its lists are not the new one's. */
  async #dropRemoved(id: string): Promise<void> {
    const isLeft = (await namesIn(this.#folder)).some((name) => removedPattern.exec(name)?.groups?.['id'] === id);
    if (isLeft && (await this.find(id)) === undefined) await this.#options.index.drop(id);
  }

  #readClaims(rawKey: string): KeyClaims | undefined {
    const known = this.#claims.get(rawKey);
    if (known !== undefined) return known;
    const claims = decodeKey(rawKey, this.#options.keySecret);
    if (claims !== undefined) this.#claims.set(rawKey, claims);
    return claims;
  }

  #eventFiles(tenantId: string): EventFiles {
    const { log } = this.#options;
    return new EventFiles({ tenantId, folder: join(this.#toTenantRoot(tenantId), 'events'), folders: this.#folders, log });
  }

  #newScope(tenantId: string): TenantScope {
    const { index, secretsKey, embedder, wakeOutbox, tell, logged, wal, log } = this.#options;
    return new TenantScope({
      tenantId,
      root: this.#toTenantRoot(tenantId),
      index,
      keys: this.#newKeys(tenantId),
      recordChanges: this.#recordChanges,
      secretsKey,
      folders: this.#folders,
      sessionCache: this.#sessionCache,
      embedder,
      wakeOutbox,
      tell,
      logged,
      wal,
      log,
    });
  }

  #newKeys(tenantId: string): Keys {
    const { keySecret, log } = this.#options;
    return new Keys({
      tenantId,
      folder: join(this.#toTenantRoot(tenantId), 'keys'),
      folders: this.#folders,
      secret: keySecret,
      cache: this.#keyRecords,
      changes: this.#recordChanges,
      log,
    });
  }

  /** Not when it is opened: recovery opens every tenant there is. */
  #sweepOnce(scope: TenantScope): void {
    if (this.#swept.has(scope.tenantId)) return;
    this.#swept.add(scope.tenantId);
    background(scope.sweep(), this.#options.log);
  }

  #toTenantRoot(tenantId: string): string {
    return join(this.#folder, tenantId);
  }
}

/**
 * The open tenants of a process. Those that were used last stay open, and every other as long as a caller has it: a
 * tenant has one scope in a process, which holds its locks.
 */
class OpenScopes {
  readonly #kept: LRUCache<string, TenantScope>;
  readonly #had = new Map<string, WeakRef<TenantScope>>();
  readonly #gone = new FinalizationRegistry<string>((tenantId) => {
    if (this.#had.get(tenantId)?.deref() === undefined) this.#had.delete(tenantId);
  });

  constructor(max: number) {
    // `maxSize` takes no room ahead of use.
    this.#kept = new LRUCache({ maxSize: max, sizeCalculation: () => 1 });
  }

  get(tenantId: string): TenantScope | undefined {
    const kept = this.#kept.get(tenantId);
    if (kept !== undefined) return kept;
    const scope = this.#had.get(tenantId)?.deref();
    if (scope !== undefined) this.#kept.set(tenantId, scope);
    return scope;
  }

  add(scope: TenantScope): TenantScope {
    const { tenantId } = scope;
    this.#kept.set(tenantId, scope);
    this.#had.set(tenantId, new WeakRef(scope));
    this.#gone.register(scope, tenantId);
    return scope;
  }

  delete(tenantId: string): void {
    this.#kept.delete(tenantId);
    this.#had.delete(tenantId);
  }
}

async function readTenantIds(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    if (isSystemError(error, 'ENOENT')) return [];
    throw error;
  });
  return entries
    .filter((entry) => entry.isDirectory() && tenantIdPattern.test(entry.name))
    .map((entry) => entry.name)
    .toSorted();
}
