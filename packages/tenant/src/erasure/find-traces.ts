import { AppError, channelNames, isMessagingChannel, type ErasureBody, type ErasureTraces } from '@concierge/contract';
import { unlessLater } from '@concierge/files';
import { deriveSessionId, toContactFolder, toNotesOwner } from '../sessions/session-ids.ts';
import type { TenantScope } from '../tenant-scope.ts';
import { Literals } from './literals.ts';

const uploadIds = /\bu_[0-9a-f]{32}\b/gu;

/** The id of the contact's erasure and the first traces of the contact. @throws AppError not_found */
export async function identifyContact(
  scope: TenantScope,
  { sender, contact_id: sessionId }: ErasureBody,
): Promise<{ readonly id: string; readonly traces: ErasureTraces }> {
  const none = { names: [], turnIds: [], uploadIds: [] };
  if (sender !== undefined) {
    const senders = await findSenders(scope, [sender]);
    return { id: toContactFolder(senders[0] ?? sender), traces: { ...none, senders, sessionIds: [] } };
  }
  for (const id of await scope.erasures.running()) {
    const running = await scope.erasures.find(id);
    if (sessionId !== undefined && running?.traces.sessionIds.includes(sessionId) === true) return { id, traces: running.traces };
  }
  const session = sessionId === undefined ? undefined : await scope.sessions.load(sessionId);
  if (session === undefined) throw new AppError('not_found', 'There is no such conversation.');
  if (session.sender === null && session.agent === 'admin')
    throw new AppError('not_found', 'That is a conversation of the owner, and of no contact.');
  if (session.sender !== null) return identifyContact(scope, { sender: session.sender });
  const id = toContactFolder(toNotesOwner({ sender: null, sessionId: session.id }));
  return { id, traces: { ...none, senders: [], sessionIds: [session.id] } };
}

/** The main address first, then its aliases. */
async function findSenders(scope: TenantScope, known: readonly string[]): Promise<string[]> {
  const senders = new Set<string>();
  for (const sender of known) {
    for (const channel of channelNames.filter(isMessagingChannel)) senders.add(await scope.contacts.findCanonicalSender(channel, sender));
    senders.add(sender);
  }
  for (const sender of Array.from(senders)) for (const { alias } of (await scope.contacts.find(sender))?.aliases ?? []) senders.add(alias);
  return [...senders];
}

/**
 * What is known of the contact, and what there is beyond that: conversations, also those that turns of the contact began
 * with other agents, and those in which the service told the owner's agent of it. Nothing that was known is left out.
 */
export async function findTraces(scope: TenantScope, known: ErasureTraces): Promise<ErasureTraces> {
  const senders = await findSenders(scope, known.senders);
  const [sessionIds, turnIds, uploads] = [new Set(known.sessionIds), new Set(known.turnIds), new Set(known.uploadIds)];
  const names = new Set(known.names);
  for (const sender of senders) {
    const { displayName } = (await scope.contacts.recordIn(toContactFolder(sender))) ?? {};
    if (displayName != null) names.add(displayName);
  }
  for (const agent of await scope.agents.names()) for (const channel of channelNames) for (const sender of senders) sessionIds.add(deriveSessionId(agent, channel, sender));
  // Again while it finds more: a turn of the contact may have started one whose conversation was looked at before.
  for (let before = -1; before < turnIds.size + sessionIds.size;) {
    before = turnIds.size + sessionIds.size;
    const found = { senders, names: [...names], sessionIds, turnIds, uploads };
    for await (const id of scope.sessions.ids()) await addSession(scope, id, found);
    await addLiveTurns(scope, found);
  }
  for (const id of sessionIds) {
    const handoff = await scope.handoffs.find(id);
    if (handoff !== undefined) turnIds.add(handoff.id);
  }
  return { senders, names: [...names], sessionIds: [...sessionIds], turnIds: [...turnIds], uploadIds: [...uploads] };
}

interface Found {
  readonly senders: readonly string[];
  readonly names: readonly string[];
  readonly sessionIds: Set<string>;
  readonly turnIds: Set<string>;
  readonly uploads: Set<string>;
}

async function addSession(scope: TenantScope, id: string, found: Found): Promise<void> {
  const conversation = await unlessLater(scope.sessions.conversation(id));
  if (conversation === undefined) return;
  const { session } = conversation;
  const turns = await scope.sessions.readSessionTurns(session);
  const isStarted = turns.some(({ parentTurnId }) => parentTurnId !== undefined && found.turnIds.has(parentTurnId));
  const isOwn = found.sessionIds.has(id) || (session.sender !== null && found.senders.includes(session.sender));
  const text = JSON.stringify(conversation);
  const isNotice = session.origin === 'notice' && new Literals({ senders: [...found.senders], names: [], sessionIds: [...found.sessionIds] }).isNamedIn(text);
  if (!isOwn && !isStarted && !isNotice) return;
  found.sessionIds.add(id);
  for (const turn of turns) found.turnIds.add(turn.id);
  for (const [uploadId] of text.matchAll(uploadIds)) found.uploads.add(uploadId);
}

async function addLiveTurns(scope: TenantScope, found: Found): Promise<void> {
  for (const turnId of await scope.inbox.turnIds()) {
    const turn = await unlessLater(scope.inbox.read(turnId));
    if (turn === undefined) continue;
    const isStarted = turn.grant !== undefined && found.turnIds.has(turn.grant.parentTurnId);
    const isOwn = found.sessionIds.has(turn.sessionId) || (turn.sender !== null && found.senders.includes(turn.sender));
    if (!isOwn && !isStarted) continue;
    found.turnIds.add(turnId);
    found.sessionIds.add(turn.sessionId);
    for (const { id } of turn.attachments) found.uploads.add(id);
  }
}
