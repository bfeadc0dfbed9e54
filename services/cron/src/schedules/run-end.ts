import {
  AppError,
  appNameOf,
  codePoints,
  durationMs,
  limits,
  type RunDelivery,
  type RunTurn,
  type Schedule,
  type ScheduleRun,
} from '@concierge/contract';
import { sessionIdOf, type TenantScope } from '@concierge/tenant';

/** The agent whose conversations are the contacts' own. */
const contactsAgent = 'cs';

/** How the turn of a run has ended; undefined while it has not. The session file is the truth about it. */
export async function endOfTurn(scope: TenantScope, turn: RunTurn): Promise<RunTurn | undefined> {
  if ((await scope.inbox.read(turn.id)) !== undefined) return undefined;
  const record = (await scope.sessions.load(turn.contact_id))?.turns.find(({ id }) => id === turn.id);
  if (record === undefined) return { ...turn, status: 'lost', error: 'Its conversation was removed.' };
  return { ...turn, status: record.status, error: record.error?.message ?? null };
}

/** Puts the reply into the outbox, where one asked for that. The same run delivers once, however often this is called. */
export async function deliverReply(scope: TenantScope, schedule: Schedule, turn: RunTurn): Promise<RunDelivery | null> {
  if (schedule.deliver === null) return null;
  const text = turn.status === 'done' ? await replyOf(scope, turn) : '';
  if (text === '') return { status: 'nothing_to_send', messageId: null, reason: turn.error };
  return keep(scope, schedule, { turn, callId: 'delivery', text });
}

/** Tells whoever gets the replies that the schedule keeps failing. */
export async function deliverAlert(scope: TenantScope, schedule: Schedule, { turn, failures }: FailedRuns): Promise<void> {
  if (schedule.deliver === null) return;
  const text = `The schedule "${schedule.name}" has failed ${String(failures)} times in a row. The last time: ${turn.error ?? 'no reason was given'}`;
  await keep(scope, schedule, { turn, callId: 'alert', text });
}

export interface FailedRuns {
  readonly turn: RunTurn;
  readonly failures: number;
}

/** Failed runs in a row up to now, when the owner is to be told of them; undefined when not. `earlier`: the newest first. */
export function failuresToTell(
  { alert }: Schedule,
  turn: RunTurn,
  { earlier, nowMs }: { readonly earlier: readonly ScheduleRun[]; readonly nowMs: number },
): FailedRuns | undefined {
  if (alert === null || turn.status !== 'failed') return undefined;
  const ran = earlier.filter((run) => run.outcome === 'ran');
  const good = ran.findIndex((run) => run.turn?.status !== 'failed');
  const failures = 1 + (good === -1 ? ran.length : good);
  const quietSinceMs = nowMs - durationMs(alert.cooldown);
  const isToldAlready = ran.some(({ alertedAt }) => alertedAt !== null && Date.parse(alertedAt) > quietSinceMs);
  return failures >= alert.afterFailures && !isToldAlready ? { turn, failures } : undefined;
}

async function replyOf(scope: TenantScope, { id, contact_id: sessionId }: RunTurn): Promise<string> {
  const session = await scope.sessions.view(sessionId);
  const last = session?.messages.findLast((message) => message.turnId === id && message.role === 'assistant');
  const text = last?.role === 'assistant' ? last.text.trim() : '';
  if (codePoints(text) <= limits.messageMaxCharacters) return text;
  // As many UTF-16 units are never more code points.
  return text.slice(0, limits.messageMaxCharacters).toWellFormed();
}

interface Said {
  readonly turn: RunTurn;
  readonly callId: string;
  readonly text: string;
}

async function keep(scope: TenantScope, { agent, deliver }: Schedule, { turn, callId, text }: Said): Promise<RunDelivery | null> {
  if (deliver === null) return null;
  const { channel, to } = deliver;
  const binding = await scope.channels.find(channel);
  if (binding?.state !== 'enabled') {
    const why = binding === undefined ? 'is not connected' : `is ${binding.state}`;
    return { status: 'failed', messageId: null, reason: `${appNameOf(channel)} ${why}.` };
  }
  const sessionId = sessionIdOf(contactsAgent, channel, await scope.contacts.canonicalOf(channel, to));
  try {
    const kept = await scope.outbox.accept({ kind: 'message', channel, to, sessionId, text, agent, turnId: turn.id, callId });
    return { status: 'kept', messageId: kept.message.id, reason: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { status: 'failed', messageId: null, reason: error.message };
  }
}
