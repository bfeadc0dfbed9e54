import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { AppError, limits, StoredAssignee, StoredStaffNote, type Actor, type Session, type SessionStaff } from '@concierge/contract';
import { namesIn, RecordFolder, removeFolderIn, unlessLater, type FolderSync } from '@concierge/files';
import type { Log } from '@concierge/runtime';
import { isHashedName } from '../sessions/session-ids.ts';

export interface StaffNotesOptions {
  readonly tenantId: string;
  /** tenants/<id>/handoffs */
  readonly folder: string;
  readonly folders: FolderSync;
  /** Called when what staff has in this conversation has changed. */
  readonly onChanged?: ((sessionId: string) => void) | undefined;
  readonly log: Log;
}

/** A later conversation of the same contact has the same id: what staff had in the one before is not for it. */
type OfSession = Pick<Session, 'id' | 'createdAt'>;

/**
 * What staff keeps about a conversation for itself: notes, and who looks after it. It lies beside the handoffs, which
 * no agent reads and no command of the tenant sees.
 */
export class StaffNotes {
  readonly #options: StaffNotesOptions;
  readonly #assignees: RecordFolder<typeof StoredAssignee>;

  constructor(options: StaffNotesOptions) {
    const { folder, folders, tenantId, onChanged, log } = options;
    this.#options = options;
    this.#assignees = new RecordFolder({
      folder: join(folder, 'assignees'),
      store: folder,
      schema: StoredAssignee,
      names: /^[0-9a-f]{32}$/u,
      folders,
      tenantId,
      onChanged,
      log,
    });
  }

  async read(session: OfSession): Promise<SessionStaff> {
    const assignee = await this.#findAssignee(session);
    return {
      assignee: assignee === undefined ? null : { name: assignee.name, by: assignee.by, since: assignee.since },
      notes: (await this.#listNotes(session)).map(({ id, text, author, by, at }) => ({ id, text, author, by, at })),
    };
  }

  /** On disk when it returns. @throws AppError conflict, when there are too many */
  async add(session: OfSession, note: Pick<StoredStaffNote, 'text' | 'author' | 'by'>): Promise<StoredStaffNote> {
    const notes = this.#notes(session.id);
    if ((await notes.names()).length >= limits.staffNotesPerSession)
      throw new AppError('conflict', `A conversation has at most ${String(limits.staffNotesPerSession)} notes of staff: delete one first.`);
    const id = `n_${randomBytes(16).toString('hex')}`;
    const stored = StoredStaffNote.parse({ version: 1, id, ...toOwner(session), ...note, at: new Date().toISOString() });
    await notes.create(id, stored);
    return stored;
  }

  /** False when there was none. */
  async remove(session: OfSession, id: string): Promise<boolean> {
    return this.#notes(session.id).remove(id);
  }

  /** Null: no one in particular. On disk when it returns. */
  async assign(session: OfSession, name: string | null, by: Actor): Promise<void> {
    if (name === null) await this.#assignees.remove(session.id);
    else await this.#assignees.put(session.id, { version: 1, ...toOwner(session), name, by, since: new Date().toISOString() });
  }

  /** By conversation; of these alone, where they are named. */
  async listAssigned(ids?: ReadonlySet<string>): Promise<ReadonlyMap<string, StoredAssignee>> {
    const names = (await this.#assignees.names()).filter((id) => ids?.has(id) ?? true);
    const found = await Promise.all(names.map(async (id) => unlessLater(this.#assignees.find(id))));
    return new Map(found.flatMap((assignee) => (assignee === undefined ? [] : [[assignee.sessionId, assignee] as const])));
  }

  /** The conversation is gone, and with it what staff had in it. */
  async forget(sessionId: string): Promise<void> {
    await this.#assignees.remove(sessionId);
    if (isHashedName(sessionId)) await removeFolderIn(this.#notesFolder, sessionId);
  }

  /** Clears away left-overs, also of conversations that a version without staff notes has removed. */
  async sweep(isThere: (sessionId: string) => Promise<boolean>): Promise<void> {
    await this.#assignees.sweep();
    const noted = (await namesIn(this.#notesFolder)).filter((name) => isHashedName(name));
    for (const id of noted) await this.#notes(id).sweep();
    for (const id of new Set([...noted, ...(await this.#assignees.names())])) if (!(await isThere(id))) await this.forget(id);
  }

  async #findAssignee(session: OfSession): Promise<StoredAssignee | undefined> {
    const found = await unlessLater(this.#assignees.find(session.id));
    return found?.sessionCreatedAt === session.createdAt ? found : undefined;
  }

  async #listNotes(session: OfSession): Promise<StoredStaffNote[]> {
    const notes = this.#notes(session.id);
    const found = await Promise.all((await notes.names()).map(async (id) => unlessLater(notes.find(id))));
    return found
      .filter((note) => note !== undefined && note.sessionCreatedAt === session.createdAt)
      .flatMap((note) => (note === undefined ? [] : [note]))
      .toSorted((one, other) => one.at.localeCompare(other.at) || one.id.localeCompare(other.id));
  }

  get #notesFolder(): string {
    return join(this.#options.folder, 'notes');
  }

  #notes(sessionId: string): RecordFolder<typeof StoredStaffNote> {
    const { folder, folders, tenantId, onChanged, log } = this.#options;
    return new RecordFolder({
      folder: join(this.#notesFolder, sessionId),
      store: folder,
      schema: StoredStaffNote,
      names: /^n_[0-9a-f]{32}$/u,
      folders,
      tenantId,
      onChanged: onChanged && (() => onChanged(sessionId)),
      log,
    });
  }
}

function toOwner({ id, createdAt }: OfSession): Pick<StoredStaffNote, 'sessionId' | 'sessionCreatedAt'> {
  return { sessionId: id, sessionCreatedAt: createdAt };
}
