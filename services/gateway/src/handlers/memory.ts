import { AppError, routes, type MemoryNote, type NotedContact } from '@concierge/contract';
import { toContactFolder, toNotesOwner, type FileEntry, type NotesAboutContact, type TenantScope } from '@concierge/tenant';
import { answerDeadline } from '@concierge/runtime';
import { eraseContact, type ErasureOptions } from '@concierge/turn';
import { pageLink, type Handlers } from '../http/call.ts';

/** A page waits this long; the next search reads what was not read by then. */
const SEARCH_TIMEOUT_MS = 30_000;

/**
 * The owner's view of memory. It searches by words alone: vectors come from a model provider, and only workers call
 * those.
 */
export function memoryHandlers(): Pick<Handlers, 'searchMemory'> & ContactNoteHandlers {
  return {
    ...contactNoteHandlers(),
    searchMemory: async ({ caller, query }) => {
      const { memory, memorySearch } = caller.scope;
      if (query.q === undefined) {
        const notes = (await memory.list()).toSorted((one, other) => other.mtimeMs - one.mtimeMs);
        return { kind: 'answer', status: 200, json: { notes: notes.map((entry) => toMemoryNote(entry)) } };
      }
      const signal = answerDeadline(SEARCH_TIMEOUT_MS);
      try {
        const { hits, unread } = await memorySearch.search({ access: 'owner' }, { text: query.q, limit: query.limit, signal });
        return { kind: 'answer', status: 200, json: { hits: [...hits], unread } };
      } catch (error) {
        if (!signal.aborted) throw error;
        throw new AppError('overloaded', 'The memory could not be searched in time.', { cause: error, retryAfterSeconds: 2 });
      }
    },
  };
}

/** What is kept of a contact, whole; the same as operators ask for, in the caller's own tenant. */
export function erasureHandlers(options: ErasureOptions): Pick<Handlers, 'eraseContact' | 'getErasure'> {
  return {
    eraseContact: async ({ caller, body, requestId }) => {
      const { scope, key } = caller;
      const report = await eraseContact(options, scope, body);
      const by = { kind: 'key', keyId: key.id } as const;
      await scope.audit.record({ by, act: 'contact.erase', tenantId: scope.tenantId, target: report.id, requestId });
      return { kind: 'answer', status: 202, json: report };
    },
    getErasure: async ({ caller, params }) => ({ kind: 'answer', status: 200, json: await caller.scope.erasures.report(params.id) }),
  };
}

type ContactNoteHandlers = Pick<
  Handlers,
  'listNotedContacts' | 'getNotedContact' | 'forgetContact' | 'getContactNote' | 'forgetContactNote'
>;

/** Stored facts about contacts: the owner sees them, and can delete them. */
function contactNoteHandlers(): ContactNoteHandlers {
  return {
    listNotedContacts: async ({ caller, query }) => {
      const { contactNotes } = caller.scope;
      const { sender, contact_id: sessionId, limit, cursor } = query;
      const named = sender === undefined && sessionId === undefined ? undefined : await idsNamed(caller.scope, { sender, sessionId });
      if (named !== undefined) {
        const found = await Promise.all(named.map(async (id) => contactNotes.find(id)));
        const json = found.filter((contact) => contact !== undefined).map((contact) => toNotedContact(contact));
        return { kind: 'answer', status: 200, json };
      }
      const { contacts, nextCursor } = await contactNotes.list({ limit, cursor });
      const json = contacts.map((contact) => toNotedContact(contact));
      return { kind: 'answer', status: 200, json, headers: pageLink(routes.listNotedContacts.path, { limit }, nextCursor) };
    },
    getNotedContact: async ({ caller, params }) => {
      const found = await caller.scope.contactNotes.find(params.id);
      if (found === undefined) throw nothingNoted();
      return { kind: 'answer', status: 200, json: toNotedContact(found) };
    },
    forgetContact: async ({ caller, params }) => {
      if (!(await caller.scope.contactNotes.forgetAll(params.id))) throw nothingNoted();
      return { kind: 'answer', status: 204 };
    },
    getContactNote: async ({ caller, params }) => {
      const { text } = await caller.scope.contactNotes.read(params.id, params.ref);
      return { kind: 'answer', status: 200, text };
    },
    forgetContactNote: async ({ caller, params }) => {
      await caller.scope.contactNotes.forget(params.id, params.ref);
      return { kind: 'answer', status: 204 };
    },
  };
}

/** Finds at most one contact: a sender and a conversation that name different contacts match none. */
async function idsNamed(
  scope: TenantScope,
  { sender, sessionId }: { readonly sender: string | undefined; readonly sessionId: string | undefined },
): Promise<string[]> {
  const ids: string[] = [];
  if (sender !== undefined) ids.push(toContactFolder(sender));
  const session = sessionId === undefined ? undefined : await scope.sessions.load(sessionId);
  if (session !== undefined) ids.push(toContactFolder(toNotesOwner({ sender: session.sender, sessionId: session.id })));
  else if (sessionId !== undefined) return [];
  const [first, ...others] = ids;
  return first === undefined || others.some((id) => id !== first) ? [] : [first];
}

function toNotedContact({ id, sender, displayName, notes }: NotesAboutContact): NotedContact {
  return { id, sender, displayName, notes: notes.map((entry) => toMemoryNote(entry)) };
}

function nothingNoted(): AppError {
  return new AppError('not_found', 'Nothing is noted about such a contact.');
}

function toMemoryNote({ path, size, mtimeMs }: FileEntry): MemoryNote {
  return { ref: path, size, updatedAt: new Date(mtimeMs).toISOString() };
}
