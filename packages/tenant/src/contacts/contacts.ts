import { join } from 'node:path';
import {
  AppError,
  channelNames,
  ContactAlias,
  ContactRecord,
  ContactUnreachable,
  limits,
  type MessagingChannel,
  type ContactView,
  type Session,
} from '@concierge/contract';
import { namesIn, RecordFolder, unlessLater, type FolderSync } from '@concierge/files';
import type { IndexedContact, NamedContact, Page, TenantIndex } from '@concierge/index';
import { failpoint, KeyedMutex, waitForAnswer, type Log } from '@concierge/runtime';
import { toContactFolder, isHashedName, deriveSessionId } from '../sessions/session-ids.ts';
import type { SessionStore } from '../sessions/session-store.ts';
import { UnindexedContacts, unindexedFolder } from './unindexed-contacts.ts';

/** Conversations looked through for one page: those of the owner have no contact. */
const scanMax = 200;
/** Neither a message nor a search waits longer for the names of contacts to be found by searches. */
const INDEX_WAIT_MS = 1000;
/** Of a name by other processes, while its row is written; each of them sees to its own. */
const CHANGES_MAX = 3;
/** Conversations of one contact that are looked up in the index. */
const indexedMax = 100;
/** Senders whose folders are compared with an id at a time. */
const comparedAtOnce = 1000;

export interface ContactsOptions {
  readonly tenantId: string;
  /** tenants/<id>/contacts */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly sessions: Pick<SessionStore, 'load'>;
  readonly index: Pick<TenantIndex, 'listSessions' | 'listContacts' | 'findContacts' | 'putContact' | 'removeContacts'>;
  /** Names of the agents that talk to contacts. */
  readonly agents: () => Promise<readonly string[]>;
  readonly log: Log;
}

export interface ContactsPage {
  readonly contacts: ContactView[];
  readonly nextCursor: string | null;
}

interface KnownQuery {
  readonly q?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/**
 * The people a tenant's agents talk to. Conversations contain who and when; a small file contains their name; an alias
 * leads from another id of the same contact to the one that the conversation is kept under. Notes about a contact lie
 * in the same folder and are `MemoryFiles`' affair.
 */
export class Contacts {
  readonly #options: ContactsOptions;
  readonly #writers = new KeyedMutex();
  readonly #unindexed: UnindexedContacts;
  #catchingUp: Promise<void> | undefined;

  constructor(options: ContactsOptions) {
    this.#options = options;
    this.#unindexed = new UnindexedContacts(this.#place(unindexedFolder));
  }

  /**
   * The id that a sender's conversation is kept under: itself, unless it is an alias. One look; a read where it is one.
   */
  async findCanonicalSender(channel: MessagingChannel, sender: string): Promise<string> {
    const aliases = this.#aliases(sender);
    return (await aliases.has(channel)) ? ((await aliases.find(channel))?.sender ?? sender) : sender;
  }

  /**
   * From now on `alias` is `sender`. The first claim wins: an alias does not move to another contact. On disk when it
   * returns.
   * @throws AppError conflict, when it leads to another contact, or has aliases itself
   */
  async addAlias({ channel, alias, sender }: Pick<ContactAlias, 'channel' | 'alias' | 'sender'>): Promise<void> {
    const canonical = await this.findCanonicalSender(channel, sender);
    if (alias === canonical) return;
    const leadsBack = this.#backReferences(canonical);
    if ((await this.findCanonicalSender(channel, alias)) === canonical && (await leadsBack.has(backName(channel, alias)))) return;
    if ((await this.#readAliases(alias)).some((known) => known.channel === channel))
      throw new AppError('conflict', 'This id is the main one of another contact.');
    const record = ContactAlias.parse({ version: 1, channel, alias, sender: canonical, since: new Date().toISOString() });
    const isNew = await this.#aliases(alias).create(channel, record);
    if (!isNew && (await this.findCanonicalSender(channel, alias)) !== canonical)
      throw new AppError('conflict', 'This id belongs to another contact already.');
    // The way back, for readers of the contact; the next caller makes it again if this one dies here.
    await leadsBack.put(backName(channel, alias), record);
  }

  /**
   * Stores the provider's report that nothing can be sent to this chat any more, or that it can again. On disk when it
   * returns.
   */
  async noteReach(channel: MessagingChannel, sender: string, reach: 'reachable' | 'unreachable'): Promise<void> {
    if (!ContactUnreachable.shape.sender.safeParse(sender).success) return;
    const marks = this.#unreachable(sender);
    if (reach === 'reachable') await marks.remove(channel);
    else await marks.put(channel, { version: 1, channel, sender, since: new Date().toISOString() });
  }

  /** Since when nothing can be sent there; undefined while the provider has not reported it. */
  async unreachableSince(channel: MessagingChannel, sender: string): Promise<string | undefined> {
    return (await this.#unreachable(sender).find(channel))?.since;
  }

  /** What a contact is called. Costs one read when it is known already. */
  async remember({ sender, displayName }: Pick<ContactRecord, 'sender' | 'displayName'>): Promise<void> {
    const records = this.#records(sender);
    const change = this.#writers.run(sender, async () => {
      const before = await records.find('contact');
      const name = clean(displayName) ?? before?.displayName ?? null;
      if (before !== undefined && before.displayName === name) return;
      const firstSeenAt = before?.firstSeenAt ?? new Date().toISOString();
      const folder = toContactFolder(sender);
      const mark = await this.#unindexed.add(folder);
      await failpoint('contact.before-file');
      await records.put('contact', { ...before, version: 1, sender, displayName: name, firstSeenAt });
      await failpoint('contact.after-file');
      await atMost(INDEX_WAIT_MS, this.#index(folder, mark));
    });
    // A message need not wait for a name.
    await unlessLater(change);
  }

  /**
   * Has searches find what writers of names left out that were killed, or met a database that did not answer. The index
   * asks for it before it searches names. Never rejects; gives up soon: searches may be behind rather than not answer.
   */
  async catchUp(): Promise<void> {
    this.#catchingUp ??= this.#indexMarked().finally(() => {
      this.#catchingUp = undefined;
    });
    await atMost(INDEX_WAIT_MS, this.#catchingUp);
  }

  /** Clears away what processes that died in the middle of writing left. */
  async sweep(): Promise<void> {
    await this.#unindexed.sweep();
  }

  /** All of whom there is a file. */
  async *listNamed(): AsyncGenerator<NamedContact> {
    for (const folder of await this.#folderNames()) {
      const record = await this.recordIn(folder);
      if (record !== undefined) yield { folder, sender: record.sender, displayName: record.displayName };
    }
  }

  /** The content of the file in this folder of `contacts/`. */
  async recordIn(folder: string): Promise<ContactRecord | undefined> {
    return unlessLater(this.#recordsIn(folder).find('contact'));
  }

  /** undefined when nothing is known of such a sender. */
  async find(sender: string): Promise<ContactView | undefined> {
    const record = await unlessLater(this.#records(sender).find('contact'));
    const conversations = (await this.#listSessions(sender)).toSorted((a, b) => b.updatedAt.localeCompare(a.updatedAt));
    if (record === undefined && conversations.length === 0) return undefined;
    const firsts = [...(record === undefined ? [] : [record.firstSeenAt]), ...conversations.map(({ createdAt }) => createdAt)];
    return {
      sender,
      displayName: record?.displayName ?? null,
      aliases: (await this.#readAliases(sender)).map(({ channel, alias }) => ({ channel, alias })),
      firstSeenAt: firsts.toSorted()[0] ?? null,
      lastSeenAt: conversations[0]?.updatedAt ?? null,
      conversations: conversations.map(({ id, agent, channel, title, updatedAt }) => ({ sessionId: id, agent, channel, title, updatedAt })),
    };
  }

  /** The contacts that have written, the last one first. */
  async list({ limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined }): Promise<ContactsPage> {
    const contacts = new Map<string, ContactView>();
    let from = cursor;
    for (let scanned = 0; scanned < scanMax && contacts.size < limit;) {
      const size = Math.min(limit - contacts.size, scanMax - scanned);
      const page = await this.#options.index.listSessions({ limit: size, cursor: from });
      for (const { id } of page.items) {
        const sender = (await unlessLater(this.#options.sessions.load(id)))?.sender ?? null;
        const view = sender === null || contacts.has(sender) ? undefined : await this.find(sender);
        if (view !== undefined) contacts.set(view.sender, view);
      }
      if (page.nextCursor === null) return { contacts: [...contacts.values()], nextCursor: null };
      from = page.nextCursor;
      scanned += page.items.length;
    }
    return { contacts: [...contacts.values()], nextCursor: from ?? null };
  }

  /** Those with an id of their own, the last one first, each once: by a part of id or name, or an exact alias. */
  async listKnown({ q, limit, cursor }: KnownQuery): Promise<Page<IndexedContact>> {
    const words = q === undefined ? undefined : { text: q, senders: await this.#mainIds(q) };
    return this.#options.index.listContacts({ limit, words, cursor });
  }

  /** The id whose folder this is; undefined when no such contact has written or has a name. */
  async findSender(folder: string): Promise<string | undefined> {
    const record = await this.recordIn(folder);
    if (record !== undefined) return record.sender;
    let cursor: string | undefined;
    for (;;) {
      const { items, nextCursor } = await this.#options.index.listContacts({ limit: comparedAtOnce, cursor });
      const found = items.find(({ sender }) => toContactFolder(sender) === folder);
      if (found !== undefined || nextCursor === null) return found?.sender;
      cursor = nextCursor;
    }
  }

  /** By exact id or alias, or by a part of the name or the id, where a name is known. */
  async search(query: string, limit: number): Promise<ContactView[]> {
    const senders = new Set<string>([query]);
    for (const sender of await this.#mainIds(query)) senders.add(sender);
    for (const sender of await this.#options.index.findContacts(query, limit)) senders.add(sender);
    const views: ContactView[] = [];
    for (const sender of senders) {
      const view = await this.find(sender);
      if (view !== undefined) views.push(view);
      if (views.length === limit) break;
    }
    return views;
  }

  /** What contacts are called; null for those whose name is not known. One read for each of them. */
  async readNames(senders: Iterable<string>): Promise<ReadonlyMap<string, string | null>> {
    const read = async (sender: string): Promise<readonly [string, string | null]> => {
      const record = await unlessLater(this.#records(sender).find('contact'));
      return [sender, record?.displayName ?? null];
    };
    return new Map(await Promise.all([...new Set(senders)].map(read)));
  }

  async #listSessions(sender: string): Promise<Session[]> {
    const agents = await this.#options.agents();
    const derived = agents.flatMap((agent) => channelNames.map((channel) => deriveSessionId(agent, channel, sender)));
    const ids = new Set([...derived, ...(await this.#listIndexed(sender))]);
    const sessions = await Promise.all(Array.from(ids, async (id) => unlessLater(this.#options.sessions.load(id))));
    return sessions.filter((session) => session !== undefined);
  }

  /**
   * Also of agents whose files are gone. None where the index does not answer: those of agents that are there are
   * derived.
   */
  async #listIndexed(sender: string): Promise<string[]> {
    const none = (): string[] => [];
    const listed = this.#options.index.listSessions({ limit: indexedMax, sender }).then(({ items }) => items.map(({ id }) => id), none);
    return Promise.race([listed, waitForAnswer(INDEX_WAIT_MS).then(none)]);
  }

  /** Has the name found by searches. Never rejects: without it the contact is found by its id. */
  async #index(folder: string, mark: string): Promise<void> {
    const { tenantId, log } = this.#options;
    try {
      await this.#putRow(folder);
      await this.#unindexed.remove(mark);
    } catch (error) {
      log.error({ tenantId, err: error }, 'the name of a contact is not in the index until a search catches up');
    }
  }

  async #indexMarked(): Promise<void> {
    const { tenantId, log } = this.#options;
    try {
      for (const { mark, folder, isOld } of await this.#unindexed.list()) {
        await this.#putRow(folder);
        if (isOld) await this.#unindexed.remove(mark);
      }
    } catch (error) {
      log.error({ tenantId, err: error }, 'names of contacts are not in the index until a search catches up');
    }
  }

  /**
   * Writes what the file says, and again where another process has changed it meanwhile. A contact that was erased
   * meanwhile is taken out again.
   */
  async #putRow(folder: string): Promise<void> {
    const { index } = this.#options;
    let written: ContactRecord | undefined;
    for (let looks = 0; looks <= CHANGES_MAX; looks += 1) {
      const record = await this.recordIn(folder);
      if (record === undefined || record.displayName === written?.displayName) break;
      await index.putContact({ folder, sender: record.sender, displayName: record.displayName });
      written = record;
    }
    if (written !== undefined && !(await this.#recordsIn(folder).has('contact'))) await index.removeContacts([folder]);
  }

  /** Those that an alias leads to, one for each channel at most. */
  async #mainIds(alias: string): Promise<string[]> {
    const folder = this.#aliases(alias);
    const found = await Promise.all((await folder.names()).map(async (channel) => unlessLater(folder.find(channel))));
    return found.flatMap((record) => (record === undefined ? [] : [record.sender]));
  }

  async #readAliases(sender: string): Promise<ContactAlias[]> {
    const folder = this.#backReferences(sender);
    const found = await Promise.all((await folder.names()).map(async (name) => unlessLater(folder.find(name))));
    return found.filter((record) => record !== undefined);
  }

  async #folderNames(): Promise<string[]> {
    const names = await namesIn(this.#options.folder);
    return names.filter(isHashedName);
  }

  #records(sender: string): RecordFolder<typeof ContactRecord> {
    return this.#recordsIn(toContactFolder(sender));
  }

  #recordsIn(folder: string): RecordFolder<typeof ContactRecord> {
    return new RecordFolder({ ...this.#place(folder), schema: ContactRecord, names: /^contact$/u });
  }

  /** contacts/<hash of the alias>/aliases/<channel>.json */
  #aliases(alias: string): RecordFolder<typeof ContactAlias> {
    return new RecordFolder({ ...this.#place(toContactFolder(alias), 'alias'), schema: ContactAlias, names: /^channel_[a-z]$/u });
  }

  /** contacts/<hash of the contact>/aliases/<channel>-<hash of the alias>.json */
  #backReferences(sender: string): RecordFolder<typeof ContactAlias> {
    return new RecordFolder({
      ...this.#place(toContactFolder(sender), 'aliases'),
      schema: ContactAlias,
      names: /^channel_[a-z]-[0-9a-f]{32}$/u,
    });
  }

  #unreachable(sender: string): RecordFolder<typeof ContactUnreachable> {
    return new RecordFolder({
      ...this.#place(toContactFolder(sender), 'unreachable'),
      schema: ContactUnreachable,
      names: /^channel_[a-z]$/u,
    });
  }

  #place(...names: readonly string[]): { folder: string; store: string; folders: FolderSync; tenantId: string; log: Log } {
    const { folder, folders, tenantId, log } = this.#options;
    return { folder: join(folder, ...names), store: folder, folders, tenantId, log };
  }
}

/** Waits for a task that never rejects, or until the time is over; the task goes on then. */
async function atMost(timeoutMs: number, task: Promise<void>): Promise<void> {
  // A time in which this process itself stood still is none that the index took.
  await Promise.race([task, waitForAnswer(timeoutMs)]);
}

function backName(channel: MessagingChannel, alias: string): string {
  return `${channel}-${toContactFolder(alias)}`;
}

/** Names come from outside: no control characters, no line breaks, not without end. */
function clean(name: string | null): string | null {
  if (name === null) return null;
  const text = name
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return text === '' ? null : text.slice(0, limits.contactNameMaxCharacters).toWellFormed();
}
