import { AppError } from '@concierge/contract';
import type { Contacts } from './contacts.ts';
import type { MemoryFiles, MemoryText } from '../memory-search/memory-files.ts';
import type { MemorySearch } from '../memory-search/memory-search.ts';
import { toContactFolder, toNotesOwner, isHashedName } from '../sessions/session-ids.ts';
import type { FileEntry } from '../files/list-folder.ts';

export interface NotesAboutContact {
  /** The name of the contact's folder, which follows from its sender. */
  readonly id: string;
  readonly sender: string | null;
  readonly displayName: string | null;
  readonly notes: readonly FileEntry[];
}

export interface ContactNotesPage {
  readonly contacts: readonly NotesAboutContact[];
  /** The id after which the next page begins. */
  readonly nextCursor: string | null;
}

export interface ContactNotesOptions {
  readonly memory: MemoryFiles;
  readonly memorySearch: Pick<MemorySearch, 'forgetContactNotes'>;
  readonly contacts: Pick<Contacts, 'recordIn' | 'find'>;
}

/**
 * What agents keep about each contact, as its owner sees and forgets it. Agents themselves reach the notes of their own
 * contact only.
 */
export class ContactNotes {
  readonly #options: ContactNotesOptions;

  constructor(options: ContactNotesOptions) {
    this.#options = options;
  }

  /** Contacts with notes, in the order of their ids. */
  async list({ limit, cursor = '' }: { readonly limit: number; readonly cursor?: string | undefined }): Promise<ContactNotesPage> {
    const contacts: NotesAboutContact[] = [];
    for (const id of await this.#options.memory.contactFolders()) {
      const found = id > cursor ? await this.find(id) : undefined;
      if (found === undefined) continue;
      if (contacts.length === limit) return { contacts, nextCursor: contacts.at(-1)?.id ?? null };
      contacts.push(found);
    }
    return { contacts, nextCursor: null };
  }

  /** undefined when nothing is noted about such a contact. */
  async find(id: string): Promise<NotesAboutContact | undefined> {
    const notes = await this.#openNotes(id).list();
    if (notes.length === 0) return undefined;
    const record = await this.#options.contacts.recordIn(id);
    return { id, sender: record?.sender ?? null, displayName: record?.displayName ?? null, notes };
  }

  /** @throws AppError not_found, too_large */
  async read(id: string, ref: string): Promise<MemoryText> {
    return this.#openNotes(id).get(ref);
  }

  /** @throws AppError not_found */
  async forget(id: string, ref: string): Promise<void> {
    await this.#openNotes(id).forget(ref);
    await this.#options.memorySearch.forgetContactNotes(id, [ref]);
  }

  /** Everything that is noted about a contact, and what it is found by; false when there was nothing. */
  async forgetAll(id: string): Promise<boolean> {
    const notes = this.#openNotes(id);
    const refs = (await notes.list()).map(({ path }) => path);
    const hadAny = await notes.forgetAll();
    await this.#options.memorySearch.forgetContactNotes(id, refs);
    return hadAny;
  }

  /**
   * Called before a conversation is removed: with a contact's last one the notes go, so that nothing of it is in a
   * later prompt.
   */
  async forgetWith({ id, agent, sender }: { readonly id: string; readonly agent: string; readonly sender: string | null }): Promise<void> {
    // The owner's own conversations: what is kept in them is the tenant's memory.
    if (agent === 'admin') return;
    const conversations = sender === null ? [] : ((await this.#options.contacts.find(sender))?.conversations ?? []);
    if (conversations.some(({ sessionId }) => sessionId !== id)) return;
    await this.forgetAll(toContactFolder(toNotesOwner({ sender, sessionId: id })));
  }

  #openNotes(id: string): MemoryFiles {
    if (!isHashedName(id)) throw new AppError('not_found', 'There are no notes about such a contact.');
    return this.#options.memory.forContactFolder(id);
  }
}
