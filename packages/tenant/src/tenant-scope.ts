import { join } from 'node:path';
import {
  AppError,
  builtInAgent,
  HOUR_MS,
  limits,
  type ReindexReport,
  type TenantSettings,
  type Embedder,
  type FeedChange,
} from '@concierge/contract';
import { namesIn, readIfThere, StatCache, type FolderSync, type RecordChanges } from '@concierge/files';
import type { DriftReport, IndexStore, TableDrift, TenantIndex } from '@concierge/index';
import type { Log } from '@concierge/runtime';
import { Agents } from './agents/agents.ts';
import { AuditLog } from './audit/audit-log.ts';
import { Channels } from './channels/channels.ts';
import { ContactNotes } from './contacts/contact-notes.ts';
import { Contacts } from './contacts/contacts.ts';
import { ContextFiles } from './agents/context-files.ts';
import { TenantEvents } from './events/tenant-events.ts';
import { Erasures } from './erasure/erasures.ts';
import { Handoffs } from './contacts/handoffs.ts';
import { incarnationFile } from './starter.ts';
import { Inbox, type HasEnded, type LoggedTurns } from './inbox/inbox.ts';
import { LaneOrder } from './inbox/lane-order.ts';
import type { Keys } from './keys/keys.ts';
import { McpServerStore } from './agents/mcp-servers.ts';
import { MemoryFiles, MemoryQuota } from './memory-search/memory-files.ts';
import { Outbox, type WakeOutbox } from './outbox/outbox.ts';
import { MemorySearch } from './memory-search/memory-search.ts';
import { StaffNotes } from './contacts/staff-notes.ts';
import { Schedules } from './schedules/schedules.ts';
import type { PublicationLog, Publications } from './sessions/publications.ts';
import { SessionLabels } from './sessions/session-labels.ts';
import { SessionStore, type SessionCache } from './sessions/session-store.ts';
import { ModelKeys } from './settings/model-keys.ts';
import { Settings, type SettingsPatch } from './settings/settings.ts';
import { SkillEditor } from './skills/skill-editor.ts';
import { Skills } from './skills/skills.ts';
import { FileHistory } from './files/file-history.ts';
import { FilesSource } from './files-source.ts';
import { TenantFiles } from './files/tenant-files.ts';
import { TenantSecrets } from './tenant-secrets.ts';
import { Uploads } from './uploads/uploads.ts';
import { WidgetStore } from './widget/widget-store.ts';
import { WorkspaceMeter } from './files/workspace-meter.ts';

export interface TenantScopeOptions {
  readonly tenantId: string;
  /** tenants/<id> */
  readonly root: string;
  readonly index: IndexStore;
  readonly keys: Keys;
  readonly recordChanges: RecordChanges;
  /** SECRETS_KEY */
  readonly secretsKey: string | undefined;
  readonly folders: FolderSync;
  readonly sessionCache: SessionCache;
  /** Without one, memory is searched by words alone. */
  readonly embedder: Embedder | undefined;
  /** Called when something is to be sent. */
  readonly wakeOutbox: WakeOutbox | undefined;
  /** Called when something has changed that pages show. */
  readonly tell: TellChange | undefined;
  /** Accepted turns that have no file yet. */
  readonly logged: LoggedTurns | undefined;
  readonly wal: Publications | undefined;
  readonly log: Log;
}

/** Tells who reads a tenant's feed of a change; does not wait, and does not throw. */
export type TellChange = (tenantId: string, change: FeedChange) => void;

const REINDEX_TIMEOUT_MS = HOUR_MS;
/** See `uses`. */
const storesAskedEveryTurn = 4;

/** What a reindex found: in the lists, and in what memory is searched through. */
export interface TenantDriftReport extends DriftReport {
  readonly memory: TableDrift;
}

/**
 * All that is one tenant's, and the only access to it. Made by `Tenants` from a verified key or binding; nothing in it
 * leads to another tenant.
 */
export class TenantScope {
  readonly tenantId: string;
  /**
   * The tenant's folder on this machine: for the sandbox's mount and for archives, not for reading paths that a tenant
   * names.
   */
  readonly root: string;
  readonly index: TenantIndex;
  readonly files: TenantFiles;
  readonly fileHistory: FileHistory;
  readonly sessions: SessionStore;
  /** Names that the owner gave to conversations, and which are pinned. */
  readonly labels: SessionLabels;
  readonly inbox: Inbox;
  /** Order of acceptance of sessions for which Redis could not keep it. */
  readonly laneOrder: LaneOrder;
  readonly skills: Skills;
  readonly agents: Agents;
  readonly skillEditor: SkillEditor;
  readonly keys: Keys;
  /** What keys and operators changed. */
  readonly audit: AuditLog;
  readonly uploads: Uploads;
  readonly context: ContextFiles;
  readonly memory: MemoryFiles;
  /** Finds notes and conversations. */
  readonly memorySearch: MemorySearch;
  readonly secrets: TenantSecrets;
  readonly channels: Channels;
  readonly schedules: Schedules;
  readonly contacts: Contacts;
  /** What is kept about contacts, for the owner. */
  readonly contactNotes: ContactNotes;
  /** Of contacts. */
  readonly erasures: Erasures;
  readonly handoffs: Handoffs;
  /** What staff keeps for itself. */
  readonly staffNotes: StaffNotes;
  readonly outbox: Outbox;
  readonly events: TenantEvents;
  readonly mcp: McpServerStore;
  readonly modelKeys: ModelKeys;
  readonly widget: WidgetStore;
  /** What commands and uploads hold on disk, and may hold. */
  readonly workspace: WorkspaceMeter;
  /** Tells who reads the feed that a conversation was removed, or is in the lists later than its turn ended. */
  readonly tellSession: ((sessionId: string) => void) | undefined;
  readonly #incarnations = new StatCache<string>(1);
  readonly #settings: Settings;
  readonly #indexStore: IndexStore;
  readonly #source: FilesSource;
  readonly #usedStores = new StatCache<boolean>(storesAskedEveryTurn);

  constructor(options: TenantScopeOptions) {
    const { tenantId, root, index, keys, secretsKey, folders, sessionCache, embedder, wakeOutbox, tell, logged, wal, log } = options;
    this.tenantId = tenantId;
    this.root = root;
    this.keys = keys;
    // In a folder of old: it is masked in every sandbox that runs, those of earlier versions included.
    const settingsFolder = join(root, 'settings');
    this.audit = new AuditLog({ folder: join(settingsFolder, 'audit'), store: settingsFolder, folders, log });
    this.secrets = new TenantSecrets(tenantId, secretsKey);
    this.#settings = new Settings({ tenantId, root, folders, log });
    const quota = new MemoryQuota({ root, folders, maxBytes: async () => readMemoryLimit(await this.settings()) });
    this.files = new TenantFiles({ root, withRoom: quota.withRoom });
    this.memory = new MemoryFiles({ root, files: this.files, quota });
    const ownWal = wal && toOwnPublications(wal, tenantId, async () => this.identity());
    this.sessions = new SessionStore({ tenantId, folder: join(root, 'sessions'), wal: ownWal, folders, cache: sessionCache, log });
    const hasEnded: HasEnded = async (turn) => (await this.sessions.findTurn(turn.sessionId, turn.turnId)) !== undefined;
    this.inbox = new Inbox({ folder: join(root, 'inbox'), logged: logged && { turns: logged, tenantId, hasEnded }, folders, log });
    this.laneOrder = new LaneOrder({ folder: join(root, 'inbox', '.order'), folders });
    this.skills = new Skills(root, this.files);
    this.agents = new Agents(root, this.files);
    this.skillEditor = new SkillEditor({ root, files: this.files, reindex: async () => this.#tryReindexSkills(log) });
    this.uploads = new Uploads(root);
    this.workspace = new WorkspaceMeter({ root, maxBytes: async () => readWorkspaceLimit(await this.settings()) });
    this.context = new ContextFiles({ root, skills: this.skills, log });
    this.mcp = new McpServerStore({ tenantId, folder: join(root, 'mcp'), folders, secrets: this.secrets, log });
    this.#indexStore = index;
    this.#source = new FilesSource({ tenantId, sessions: this.sessions, skills: this.skills, contacts: () => this.contacts, log });
    this.index = index.forTenant(tenantId, this.#source);
    const place = { tenantId, folders, log };
    this.fileHistory = new FileHistory({ ...place, store: settingsFolder, files: this.files });
    const telling = (kind: FeedChange['kind']) => tell && ((id: string) => tell(tenantId, { kind, id }));
    this.channels = new Channels({
      ...place,
      folder: join(root, 'channels'),
      secrets: this.secrets,
      onOpened: async () => this.outbox.wakeAll(),
      changes: options.recordChanges,
    });
    this.widget = new WidgetStore({ ...place, folder: join(root, 'widget'), secrets: this.secrets });
    this.modelKeys = new ModelKeys({ ...place, store: settingsFolder, secrets: this.secrets });
    this.erasures = new Erasures({ ...place, folder: settingsFolder });
    this.tellSession = telling('session');
    this.labels = new SessionLabels({ ...place, folder: join(root, 'sessions'), onChanged: this.tellSession });
    this.handoffs = new Handoffs({ ...place, folder: join(root, 'handoffs'), onChanged: telling('handoff') });
    this.staffNotes = new StaffNotes({ ...place, folder: join(root, 'handoffs'), onChanged: telling('handoff') });
    this.outbox = new Outbox({ ...place, folder: join(root, 'outbox'), wake: wakeOutbox, onChanged: telling('delivery') });
    this.events = new TenantEvents({ ...place, folder: join(root, 'events'), secrets: this.secrets });
    const { sessions, index: ownIndex, events, memory } = this;
    this.contacts = new Contacts({
      ...place,
      folder: join(root, 'contacts'),
      sessions,
      index: ownIndex,
      agents: async () => this.agents.names(),
    });
    this.schedules = new Schedules({
      ...place,
      folder: join(root, 'cron'),
      onChanged: telling('schedule'),
      plan: async () => (await this.settings()).plan,
      outbox: this.outbox,
      ensureEndpoint: async (url) => events.endpoints.ensure(url),
      hasAgent: async (name) => builtInAgent(name) !== undefined || (await this.agents.find(name)) !== undefined,
    });
    this.memorySearch = new MemorySearch({
      tenantId,
      root,
      memory,
      sessions,
      passages: this.index.passages,
      embedder: this.#openEmbedder(embedder),
      log,
    });
    this.contactNotes = new ContactNotes({ memory, memorySearch: this.memorySearch, contacts: this.contacts });
  }

  /** The settings in force: those of tenant.json, or the last good ones while that cannot be used. One system call. */
  async settings(): Promise<TenantSettings> {
    return this.#settings.current();
  }

  /**
   * False when the store is empty: what most tenants do not use is asked no more than this in each turn. One system
   * call when nothing has changed.
   */
  async uses(store: 'events/endpoints' | 'handoffs' | 'mcp' | 'sessions/.labels' | 'settings/model-keys'): Promise<boolean> {
    const folder = join(this.root, store);
    return (await this.#usedStores.get(folder, async () => (await namesIn(folder)).length > 0)) === true;
  }

  /** The tenant's own keys for model providers; null: there is one, and it cannot be read. */
  async openModelKeys(): Promise<ReadonlyMap<string, string | null>> {
    return (await this.uses('settings/model-keys')) ? this.modelKeys.open() : noModelKeys;
  }

  /**
   * What distinguishes this tenant from every other, an earlier one of the same name included; ids of turns are derived
   * from it: the tenant's id with a mark that is drawn when the tenant is made. A tenant of the same name that is
   * made after a deletion has another mark, so the same request to it is another turn. Tenants from before there were
   * marks have their id alone. One system call when nothing has changed.
   */
  async identity(): Promise<string> {
    const path = join(this.root, incarnationFile);
    const mark = await this.#incarnations.get(path, async () => (await readIfThere(path)) ?? '');
    return mark === undefined || mark === '' ? this.tenantId : `${this.tenantId}/${mark}`;
  }

  /** What is wrong with tenant.json, as of the last `settings()`; null when nothing is. */
  settingsProblem(): string | null {
    return this.#settings.problem;
  }

  /**
   * JSON merge patch (RFC 7396). Whether the caller may change these settings is the caller's to see to.
   * @throws AppError invalid_request
   */
  async updateSettings(patch: SettingsPatch): Promise<TenantSettings> {
    return this.#settings.update(patch);
  }

  /**
   * Removes a conversation from files and index; false when there is none. Its usage stays. With a contact's last one
   * the notes about it go.
   */
  async removeSession(id: string): Promise<boolean> {
    const session = await this.sessions.load(id);
    // First: cut off in between, the conversation is still there to be removed again.
    if (session !== undefined) await this.contactNotes.forgetWith(session);
    const removed = await this.sessions.remove(id);
    if (removed !== undefined) {
      await this.index.removeSession(removed);
      await this.handoffs.forget(id);
      await this.staffNotes.forget(id);
      this.tellSession?.(id);
    }
    return removed !== undefined;
  }

  /** Conversations with an accepted message that will be answered, in a session that must still exist. */
  async busySessions(): Promise<ReadonlySet<string>> {
    const busy = new Set<string>();
    for (const turnId of await this.inbox.turnIds()) {
      const turn = await this.inbox.read(turnId);
      if (turn !== undefined) busy.add(turn.sessionId);
    }
    return busy;
  }

  /** What a reindex would put right; changes nothing. */
  async compareIndex(): Promise<TenantDriftReport> {
    const lists = await this.#indexStore.compare(this.tenantId, this.#source);
    return { ...lists, memory: await this.memorySearch.readAll(AbortSignal.timeout(REINDEX_TIMEOUT_MS), { dryRun: true }) };
  }

  /** Makes the index match the files; returns what differed. Clears away left-overs, too. */
  async reindex(): Promise<TenantDriftReport> {
    await this.files.sweep();
    await this.sweep();
    const lists = await this.#indexStore.rebuild(this.tenantId, this.#source);
    return { ...lists, memory: await this.memorySearch.readAll(AbortSignal.timeout(REINDEX_TIMEOUT_MS)) };
  }

  /** Rebuilds the index's list of skills; reports which ones cannot be used, and why. */
  async reindexSkills(): Promise<ReindexReport> {
    const { valid, invalid } = await this.skills.scan();
    await this.index.replaceSkills(valid);
    return { indexed: valid.length, invalid: invalid.map(({ path, reason }) => ({ path, reason })) };
  }

  /** Clears away what processes that died in the middle of writing left in our own folders: a directory read each. */
  async sweep(): Promise<void> {
    await this.inbox.sweep();
    const accepted = new Set(await this.inbox.filedTurnIds());
    await this.laneOrder.sweep((turnId) => accepted.has(turnId));
    await this.sessions.sweep();
    await this.labels.sweep();
    await this.keys.sweep();
    await this.uploads.sweep();
    await this.channels.sweep();
    await this.schedules.sweep();
    await this.contacts.sweep();
    await this.erasures.sweep();
    await this.handoffs.sweep();
    await this.staffNotes.sweep(async (id) => (await this.sessions.load(id)) !== undefined);
    await this.outbox.sweep();
    await this.events.sweep();
    await this.mcp.sweep();
    await this.modelKeys.sweep();
    await this.widget.sweep();
    await this.#settings.sweep();
  }

  /** The index is disposable, and prompts do not ask it: a skill that was saved stays saved. */
  async #tryReindexSkills(log: Log): Promise<void> {
    const { tenantId } = this;
    await this.reindexSkills().catch((error: unknown) =>
      log.error({ tenantId, err: error }, 'skills are not in the index until a reindex'),
    );
  }

  /** Texts of a tenant with an own key are embedded with it or not at all. */
  #openEmbedder(embedder: Embedder | undefined): Embedder | undefined {
    if (embedder === undefined) return undefined;
    const [provider = ''] = embedder.model.split('/', 1);
    return {
      model: embedder.model,
      embed: async (texts, signal, how) => {
        const key = (await this.openModelKeys()).get(provider);
        if (key === null) throw new AppError('internal_error', `The own key for ${provider} cannot be read; enter it again.`);
        return embedder.embed(texts, signal, { ...how, ownKey: key });
      },
    };
  }
}

const noModelKeys: ReadonlyMap<string, string | null> = new Map();

function toOwnPublications(wal: Publications, tenantId: string, identity: () => Promise<string>): PublicationLog {
  return {
    takes: (length) => wal.takes(length),
    record: async (publication) => wal.record({ ...publication, tenantId, identity: await identity() }),
  };
}

function readMemoryLimit({ plan, limits: own }: TenantSettings): number | undefined {
  return own?.memoryBytes ?? (plan === 'preview' ? limits.previewMemoryBytes : undefined);
}

function readWorkspaceLimit({ limits: own }: TenantSettings): number {
  return own?.workspaceBytes ?? limits.workspaceMaxBytes;
}
