import { AppError, channelNames, isMessagingChannel, type AcceptedTurn, type ErasureBody, type ErasureTraces } from '@concierge/contract';
import { unlessLater } from '@concierge/files';
import { deriveSessionId, toContactFolder, toNotesOwner } from '../sessions/session-ids.ts';
import type { TenantScope } from '../tenant-scope.ts';
import { Literals } from './literals.ts';

const uploadIds = /\bu_[0-9a-f]{32}\b/gu;

export interface IdentifiedContact {
  /** Of its erasure. */
  readonly id: string;
  /** The first ones. */
  readonly traces: ErasureTraces;
}

/** @throws AppError not_found, for a conversation that there is not */
export async function identifyContact(scope: TenantScope, { sender, contact_id: sessionId }: ErasureBody): Promise<IdentifiedContact> {
  if (sender !== undefined) return identifySender(scope, sender);
  if (sessionId === undefined) throw noConversation();
  for (const id of await scope.erasures.running()) {
    const running = await scope.erasures.find(id);
    if (running?.traces.sessionIds.includes(sessionId) === true) return { id, traces: running.traces };
  }
  const begun = (await scope.sessions.load(sessionId)) ?? (await findLiveTurn(scope, sessionId));
  if (begun === undefined) throw noConversation();
  if (begun.sender !== null) return identifySender(scope, begun.sender);
  if (begun.agent === 'admin') throw new AppError('not_found', 'That is a conversation of the owner, and of no contact.');
  const id = toContactFolder(toNotesOwner({ sender: null, sessionId }));
  return { id, traces: { ...nothing, senders: [], sessionIds: [sessionId] } };
}

const nothing = { names: [], turnIds: [], uploadIds: [] };

function noConversation(): AppError {
  return new AppError('not_found', 'There is no such conversation.');
}

async function identifySender(scope: TenantScope, sender: string): Promise<IdentifiedContact> {
  const senders = await findSenders(scope, [sender]);
  return { id: toContactFolder(senders[0] ?? sender), traces: { ...nothing, senders, sessionIds: [] } };
}

/** Of a conversation whose first turn has not ended. */
async function findLiveTurn(scope: TenantScope, sessionId: string): Promise<AcceptedTurn | undefined> {
  for (const turnId of await scope.inbox.turnIds()) {
    const turn = await unlessLater(scope.inbox.read(turnId));
    if (turn?.sessionId === sessionId) return turn;
  }
  return undefined;
}

/** The main address first, then its aliases. */
async function findSenders(scope: TenantScope, known: readonly string[]): Promise<string[]> {
  const senders = new Set<string>();
  for (const sender of known) {
    const channels = channelNames.filter(isMessagingChannel);
    const mains = await Promise.all(channels.map(async (channel) => scope.contacts.findCanonicalSender(channel, sender)));
    for (const main of mains) if (main !== sender) senders.add(main);
    senders.add(sender);
  }
  for (const sender of Array.from(senders)) for (const { alias } of (await scope.contacts.find(sender))?.aliases ?? []) senders.add(alias);
  return [...senders];
}

/**
 * What is known of the contact, and what there is beyond that: conversations, also those that turns of the contact
 * began with other agents, and those in which the service told the owner's agent of it. Nothing that was known is left
 * out.
 */
export async function findTraces(scope: TenantScope, known: ErasureTraces): Promise<ErasureTraces> {
  const senders = await findSenders(scope, known.senders);
  const [sessionIds, turnIds, uploads] = [new Set(known.sessionIds), new Set(known.turnIds), new Set(known.uploadIds)];
  for (const id of await scope.uploads.idsFrom(senders)) uploads.add(id);
  const names = new Set(known.names);
  for (const sender of senders) {
    const { displayName } = (await scope.contacts.recordIn(toContactFolder(sender))) ?? {};
    if (displayName != null) names.add(displayName);
  }
  for (const agent of await scope.agents.names())
    for (const channel of channelNames) for (const sender of senders) sessionIds.add(deriveSessionId(agent, channel, sender));
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
  const isNotice =
    session.origin === 'notice' &&
    new Literals({ senders: [...found.senders], names: [], sessionIds: [...found.sessionIds] }).isNamedIn(text);
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
