import type { AssistantMessage, SessionMessage } from '@concierge/contract';
import type { AuditInput, RevisionFile, SessionFile } from './audit-input.ts';
import type { Acknowledged } from './evidence.ts';
import type { Finding } from './finding.ts';
import { readRequest } from '../load/request.ts';

/** I1, I2, I7: what was acknowledged is in its session, with one end and one reply. */
export function auditTurns({ asked, acknowledged, sessions, leftInInboxes }: AuditInput): Finding[] {
  const known = new Set(acknowledged.map(({ marker }) => marker));
  const unacknowledged = asked.filter(({ marker }) => !known.has(marker));
  return [
    ...unacknowledged.map(({ marker }): Finding => ({
      invariant: 'I1',
      kind: 'unacknowledged',
      subject: marker,
      detail: 'asked, but never acknowledged',
    })),
    ...leftInInboxes.map((subject): Finding => ({
      invariant: 'I1',
      kind: 'left in the inbox',
      subject,
      detail: 'accepted, and not in a session at rest',
    })),
    ...acknowledged.flatMap((turn) => auditTurn(turn, sessions)),
    ...auditMarkers(sessions),
  ];
}

function auditTurn(turn: Acknowledged, sessions: readonly SessionFile[]): Finding[] {
  const { turnId: subject, marker, sessionId, tenantId } = turn;
  const file = sessions.find((one) => one.tenantId === tenantId && one.sessionId === sessionId);
  if (file === undefined) return [{ invariant: 'I1', kind: 'lost', subject, detail: `${marker}: there is no session ${sessionId}` }];
  const records = file.turns.filter(({ id }) => id === subject);
  const messages = file.messages.filter((message) => message.turnId === subject);
  const prompts = messages.filter(({ role }) => role === 'user');
  const replies = messages.filter((message) => isFinalReply(message));
  if (records.length === 0)
    return [{ invariant: 'I1', kind: 'lost', subject, detail: `${marker}: acknowledged, but session ${sessionId} has no record of it` }];
  const findings: Finding[] = [];
  const failed = records[0]?.status !== 'done';
  if (records.length > 1)
    findings.push({ invariant: 'I2', kind: 'doubled', subject, detail: `${marker}: ${String(records.length)} records` });
  if (prompts.length > 1)
    findings.push({
      invariant: 'I2',
      kind: 'doubled',
      subject,
      detail: `${marker}: its message stands ${String(prompts.length)} times in the session`,
    });
  if (replies.length > 1)
    findings.push({ invariant: 'I2', kind: 'doubled', subject, detail: `${marker}: ${String(replies.length)} replies` });
  if (!failed && prompts.length === 0)
    findings.push({ invariant: 'I1', kind: 'lost', subject, detail: `${marker}: recorded as done, but its message is missing` });
  if (!failed && replies.length === 0)
    findings.push({ invariant: 'I1', kind: 'lost', subject, detail: `${marker}: recorded as done, but its reply is missing` });
  return findings;
}

export function isFinalReply(message: SessionMessage): message is AssistantMessage {
  return message.role === 'assistant' && message.toolCalls === undefined && message.partial === undefined;
}

/**
 * A client repeats a request under one key until it gets an answer: its message is one turn, however often it arrived.
 */
function auditMarkers(sessions: readonly SessionFile[]): Finding[] {
  const turnsBySession = new Map<string, Set<string>>();
  for (const { messages } of sessions) {
    for (const message of messages) {
      const marker = message.role === 'user' ? readRequest(message.text)?.marker : undefined;
      if (marker !== undefined) turnsBySession.set(marker, (turnsBySession.get(marker) ?? new Set()).add(message.turnId));
    }
  }
  return [...turnsBySession]
    .filter(([, turns]) => turns.size > 1)
    .map(([subject, turns]): Finding => ({
      invariant: 'I7',
      kind: 'two turns',
      subject,
      detail: `was run as ${[...turns].join(' and ')}`,
    }));
}

/** I3: the records and the messages of a session stand in the order in which its client got its acknowledgements. */
export function auditOrder({ acknowledged, sessions }: AuditInput): Finding[] {
  const conversations = Map.groupBy(acknowledged, ({ tenantId, sessionId }) => `${tenantId}/${sessionId}`);
  return [...conversations].flatMap(([key, turns]) => {
    const file = sessions.find((one) => `${one.tenantId}/${one.sessionId}` === key);
    if (file === undefined) return [];
    const order = turns.toSorted((left, right) => left.number - right.number).map(({ turnId }) => turnId);
    const prompts = file.messages.filter(({ role }) => role === 'user').map(({ turnId }) => turnId);
    return [
      ...inversions(
        order,
        file.turns.map(({ id }) => id),
        { key, what: 'records' },
      ),
      ...inversions(order, prompts, { key, what: 'messages' }),
    ];
  });
}

/** Neighbours in the session that the client had in the other order. */
function inversions(order: readonly string[], found: readonly string[], { key, what }: { key: string; what: string }): Finding[] {
  const places = new Map(order.map((turnId, place) => [turnId, place]));
  const known = found.filter((turnId) => places.has(turnId));
  return known.flatMap((turnId, at): Finding[] => {
    const before = known[at - 1];
    if (before === undefined || (places.get(before) ?? 0) <= (places.get(turnId) ?? 0)) return [];
    return [
      {
        invariant: 'I3',
        kind: 'disorder',
        subject: key,
        detail: `${what}: ${before} stands before ${turnId}, but was acknowledged after it`,
      },
    ];
  });
}

/** I4: every file parses, every revision is the one in its name, and the view is the newest of them. */
export function auditFiles({ sessions }: AuditInput): Finding[] {
  return sessions.flatMap((file) => {
    const subject = `${file.tenantId}/${file.sessionId}`;
    if (file.session === undefined) return [{ invariant: 'I4', kind: 'broken file', subject, detail: file.problem ?? 'cannot be read' }];
    return auditRevisions(file, subject);
  });
}

function auditRevisions({ session, revisions }: SessionFile, subject: string): Finding[] {
  const newest = revisions.at(-1)?.session;
  const isBehind = newest !== undefined && newest.revision !== session?.revision;
  return [
    ...revisions.flatMap((revision, at) => revisionProblems(revision, revisions[at - 1])),
    ...(isBehind ? [`the view is revision ${String(session?.revision)}, the newest ${String(newest.revision)}`] : []),
  ].map((detail): Finding => ({ invariant: 'I4', kind: 'broken revisions', subject, detail }));
}

function revisionProblems({ name, session }: RevisionFile, before: RevisionFile | undefined): string[] {
  const number = Number.parseInt(name, 10);
  if (session === undefined) return [`${name} does not parse`];
  const problems: string[] = [];
  if (session.revision !== number) problems.push(`${name} says that it is revision ${String(session.revision)}`);
  if (before === undefined) return problems;
  if (Number.parseInt(before.name, 10) !== number - 1) problems.push(`revision ${String(number - 1)} is missing`);
  // What a revision held is in every later one, unless it was moved to the history.
  const ids = new Set(session.turns.map(({ id }) => id));
  const missing =
    session.turns.length < (before.session?.turns.length ?? 0) ? [] : (before.session?.turns ?? []).filter(({ id }) => !ids.has(id));
  return [...problems, ...missing.map(({ id }) => `revision ${String(number)} lacks turn ${id} of the one before`)];
}
