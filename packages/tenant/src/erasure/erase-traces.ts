import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ErasedCounts, ErasurePlace, ErasureTraces } from '@concierge/contract';
import { enterIfThere, FolderHandle, namesIn, readIfThere, removeTree } from '@concierge/files';
import { failpoint } from '@concierge/runtime';
import { tenantOwner } from '@concierge/index';
import { contactsFolder, type MemoryFiles } from '../memory-search/memory-files.ts';
import { toContactFolder, toNotesOwner } from '../sessions/session-ids.ts';
import type { TenantScope } from '../tenant-scope.ts';
import { Literals, splitEntries } from './literals.ts';

export interface ErasedTraces {
  readonly counts: Omit<ErasedCounts, 'streams'>;
  readonly places: readonly ErasurePlace[];
}

/**
 * Removes what the traces lead to from files and index: what would be sent first, what leads to the rest last. May be
 * cut off anywhere and repeated. The contact's turns have ended.
 */
export async function eraseTraces(scope: TenantScope, traces: ErasureTraces): Promise<ErasedTraces> {
  const [senders, sessionIds, turnIds] = [new Set(traces.senders), new Set(traces.sessionIds), new Set(traces.turnIds)];
  const addresses = new Literals({ ...traces, names: [], sessionIds: [] });
  const deliveries = await scope.outbox.erase(
    ({ kind, to, sessionId, turnId, text }) =>
      senders.has(to) || sessionIds.has(sessionId) || turnIds.has(turnId) || (kind === 'notice' && addresses.isNamedIn(text)),
  );
  const events = await scope.events.files.erase(({ data: { contact_id: contactId, turnId } }) => {
    const isIn = (ids: ReadonlySet<string>, id: unknown): boolean => typeof id === 'string' && ids.has(id);
    return isIn(sessionIds, contactId) || isIn(turnIds, turnId);
  });
  const shared = await findSharedUploads(scope, traces);
  const literals = new Literals(traces);
  await scope.fileHistory.erase(({ path, text }) => literals.isNamedIn(path) || (text !== null && literals.isNamedIn(text)));
  const [notes, named] = [await eraseNotes(scope, traces), await eraseEntries(scope, literals)];
  await failpoint('erasure.before-sessions');
  const ended = await eraseSessions(scope, traces);
  await failpoint('erasure.after-sessions');
  const uploads = await eraseUploads(
    scope,
    traces.uploadIds.filter((id) => !shared.has(id)),
  );
  await removeBroken(scope, [...sessionIds, ...turnIds]);
  await removeContactFolders(scope, traces);
  const counts = { ...ended, notes, entries: named.entries, uploads, deliveries, events };
  const places = Array.from(shared, (ref) => ({ kind: 'upload', ref, why: 'shared' }) as const);
  return { counts, places: [...places, ...named.places] };
}

async function eraseSessions(scope: TenantScope, { sessionIds, turnIds }: ErasureTraces): Promise<{ sessions: number; turns: number }> {
  let [sessions, turns] = [0, 0];
  for (const id of sessionIds) {
    const session = await scope.sessions.load(id);
    if (session !== undefined) turns += (await scope.sessions.readSessionTurns(session)).length;
    const isRemoved = await scope.removeSession(id);
    const hadRemains = await scope.sessions.removeRemains(id);
    if (isRemoved || hadRemains) sessions += 1;
    await scope.handoffs.forget(id);
    await scope.staffNotes.forget(id);
  }
  // Cut off between the files and the index, an earlier removal left rows.
  const ids = new Set(sessionIds);
  for await (const removed of scope.sessions.removed()) if (ids.has(removed.id)) await scope.index.removeSession(removed);
  for (const turnId of turnIds) if (turnId.startsWith('t_')) await scope.inbox.remove(turnId);
  return { sessions, turns };
}

/** Uploads of the contact that a conversation of others has, too. */
async function findSharedUploads(scope: TenantScope, { uploadIds, sessionIds }: ErasureTraces): Promise<Set<string>> {
  const shared = new Set<string>();
  if (uploadIds.length === 0) return shared;
  for await (const id of scope.sessions.ids()) {
    if (sessionIds.includes(id)) continue;
    const text = JSON.stringify(await scope.sessions.conversation(id)) ?? '';
    for (const uploadId of uploadIds) if (text.includes(uploadId)) shared.add(uploadId);
  }
  return shared;
}

async function eraseUploads(scope: TenantScope, ids: readonly string[]): Promise<number> {
  let erased = 0;
  for (const id of ids) {
    if ((await scope.uploads.find(id)) !== undefined) erased += 1;
    await scope.uploads.remove(id);
  }
  return erased;
}

/** The names of the folders that notes about the contact lie in. */
function listFolders({ senders, sessionIds }: ErasureTraces): string[] {
  const anonymous = sessionIds.map((sessionId) => toContactFolder(toNotesOwner({ sender: null, sessionId })));
  return [...senders.map((sender) => toContactFolder(sender)), ...anonymous];
}

async function eraseNotes(scope: TenantScope, traces: ErasureTraces): Promise<number> {
  let erased = 0;
  for (const folder of listFolders(traces)) {
    erased += (await scope.contactNotes.find(folder))?.notes.length ?? 0;
    await scope.contactNotes.forgetAll(folder);
    for (const ref of (await scope.index.passages.noteStamps(folder)).keys()) await forgetNote(scope, folder, ref);
  }
  return erased;
}

async function forgetNote(scope: TenantScope, owner: string, ref: string): Promise<void> {
  await scope.index.passages.remove({ kind: 'note', owner, ref });
  await scope.index.passages.dropUnusedVectors();
}

/** Takes the entries that name the contact out of the tenant's notes, and out of those about other contacts. */
async function eraseEntries(scope: TenantScope, literals: Literals): Promise<{ entries: number; places: ErasurePlace[] }> {
  const found: { entries: number; places: ErasurePlace[] } = { entries: 0, places: [] };
  const memories: [string, MemoryFiles][] = [[tenantOwner, scope.memory]];
  for (const folder of await scope.memory.contactFolders()) memories.push([folder, scope.memory.forContactFolder(folder)]);
  for (const [owner, memory] of memories) {
    for (const { path } of await memory.list({ hidden: true })) {
      const removed = await memory.takeOut(path, (text) => cutNamed(text, literals));
      if (removed === undefined) continue;
      await forgetNote(scope, owner, path);
      found.entries += removed.entries;
      const ref = owner === tenantOwner ? path : `${contactsFolder}/${owner}/${path}`;
      if (removed.text !== '') found.places.push({ kind: 'note', ref, why: 'cut' });
    }
  }
  return found;
}

/** What is left of a note, and how many entries are not; '' for a note whose heading names the contact. */
function cutNamed(text: string, literals: Literals): { readonly text: string; readonly entries: number } {
  const entries = splitEntries(text);
  const kept = entries.filter((entry) => !literals.isNamedIn(entry));
  const isAboutContact = kept[0] !== entries[0] && entries[0]?.startsWith('#') === true;
  return { text: isAboutContact ? '' : kept.join('\n'), entries: isAboutContact ? entries.length : entries.length - kept.length };
}

/** Files that a damaged disk has spoilt were set aside: those that have an id of the contact go. */
async function removeBroken({ root }: TenantScope, ids: readonly string[]): Promise<void> {
  for (const folder of ['sessions', 'inbox', 'outbox']) {
    for (const name of await namesIn(join(root, folder))) {
      const path = join(root, folder, name);
      const text = name.endsWith('.broken') ? ((await readIfThere(path)) ?? '') : '';
      if (ids.some((id) => text.includes(id) || (name.endsWith('.broken') && name.startsWith(id)))) await rm(path, { force: true });
    }
  }
}

/** With the contact's names, aliases and marks. */
async function removeContactFolders({ root, index }: TenantScope, traces: ErasureTraces): Promise<void> {
  const folders = listFolders(traces);
  await using tenant = await FolderHandle.open(root);
  await using contacts = await enterIfThere(tenant, contactsFolder);
  if (contacts !== undefined) {
    for (const folder of folders) await removeTree(contacts, folder);
    await contacts.sync();
  }
  await index.removeContacts(folders);
}
