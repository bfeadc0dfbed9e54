import {
  AppError,
  toAppName,
  durationMs,
  type MessagingChannel,
  type RunDelivery,
  type RunTurn,
  type Schedule,
  type ScheduleRun,
} from '@concierge/contract';
import { findLastReply, deriveSessionId, type WebhookEventInput, type TenantScope } from '@concierge/tenant';
import { heartbeatReported, scheduleCompleted, scheduleFailing, type EndedRun, type WebhookEvents } from '@concierge/turn';
import { deriveHeartbeatId, isQuiet } from './heartbeat.ts';

/** The agent whose conversations are the contacts' own. */
const contactsAgent = 'cs';

/** How the turn of a run has ended; undefined while it has not. The session file is the truth about it. */
export async function endOfTurn(scope: TenantScope, turn: RunTurn): Promise<RunTurn | undefined> {
  if ((await scope.inbox.read(turn.id)) !== undefined) return undefined;
  const record = (await scope.sessions.load(turn.contact_id))?.turns.find(({ id }) => id === turn.id);
  if (record === undefined) return { ...turn, status: 'lost', error: 'Its conversation was removed.' };
  return { ...turn, status: record.status, error: record.error?.message ?? null };
}

export interface RunInScope {
  readonly scope: TenantScope;
  readonly webhookEvents: Pick<WebhookEvents, 'emit' | 'emitTo'>;
  readonly schedule: Schedule;
  readonly run: ScheduleRun;
}

/**
 * Puts the reply into the outbox, or emits it as an event, where the schedule asks for that. The same run delivers
 * once, however often this is called.
 */
export async function deliverReply(ended: RunInScope, turn: RunTurn): Promise<RunDelivery | null> {
  const { scope, schedule, run } = ended;
  const { deliver } = schedule;
  const isHeartbeat = schedule.id === deriveHeartbeatId(scope.tenantId);
  if (deliver === null && !isHeartbeat) return null;
  const reply = turn.status === 'done' ? await readReply(scope, turn) : '';
  const text = isHeartbeat && isQuiet(reply) ? '' : reply;
  // Emitted besides the delivery: it also reaches an owner without a channel.
  if (isHeartbeat && text !== '') await ended.webhookEvents.emit(scope, heartbeatReported({ schedule, run, turn }, text));
  if (deliver === null) return null;
  if (text === '') return { status: 'nothing_to_send', messageId: null, eventId: null, reason: turn.error };
  if ('webhook' in deliver) return emit(ended, deliver.webhook, scheduleCompleted({ schedule, run, turn }, text));
  return keep(scope, { ...deliver, agent: schedule.agent }, { turn, callId: 'delivery', text });
}

/** Notifies the recipient of the replies and the tenant's subscribed systems that the schedule keeps failing. */
export async function deliverAlert(ended: RunInScope, { turn, failures }: FailedRuns): Promise<void> {
  const { scope, webhookEvents, schedule, run } = ended;
  const { deliver } = schedule;
  const why = turn.error ?? 'no reason was given';
  const failed: EndedRun = { schedule, run, turn };
  const failing = scheduleFailing(failed, { failures, error: turn.error });
  await webhookEvents.emit(scope, failing);
  if (deliver === null) return;
  if ('webhook' in deliver) {
    await emit(ended, deliver.webhook, failing);
    return;
  }
  const text = `The schedule "${schedule.name}" has failed ${String(failures)} times in a row. The last time: ${why}`;
  await keep(scope, { ...deliver, agent: schedule.agent }, { turn, callId: 'alert', text });
}

export interface FailedRuns {
  readonly turn: RunTurn;
  readonly failures: number;
}

/**
 * Failed runs in a row up to now, when the owner must be notified of them; undefined when not. `earlier`: the newest
 * first.
 */
export function failuresToReport(
  { alert }: Schedule,
  turn: RunTurn,
  { earlier, nowMs }: { readonly earlier: readonly ScheduleRun[]; readonly nowMs: number },
): FailedRuns | undefined {
  if (alert === null || turn.status !== 'failed') return undefined;
  const ran = earlier.filter((run) => run.outcome === 'ran');
  const failures = failuresInARow(turn, ran);
  const quietSinceMs = nowMs - durationMs(alert.cooldown);
  const isReported = ran.some(({ alertedAt }) => alertedAt !== null && Date.parse(alertedAt) > quietSinceMs);
  return failures >= alert.afterFailures && !isReported ? { turn, failures } : undefined;
}

/** Counts failed runs in a row up to now; `earlier`: the newest first. */
export function failuresInARow(turn: RunTurn, earlier: readonly ScheduleRun[]): number {
  if (turn.status !== 'failed') return 0;
  const ran = earlier.filter((run) => run.outcome === 'ran');
  const good = ran.findIndex((run) => run.turn?.status !== 'failed');
  return 1 + (good === -1 ? ran.length : good);
}

async function readReply(scope: TenantScope, { id, contact_id: sessionId }: RunTurn): Promise<string> {
  const session = await scope.sessions.view(sessionId);
  return session === undefined ? '' : findLastReply(session, id);
}

interface ReceivedMessage {
  readonly turn: RunTurn;
  readonly callId: string;
  readonly text: string;
}

interface Recipient {
  readonly channel: MessagingChannel;
  readonly to: string;
  /** The agent that sends it. */
  readonly agent: string;
}

async function keep(scope: TenantScope, { channel, to, agent }: Recipient, { turn, callId, text }: ReceivedMessage): Promise<RunDelivery> {
  const binding = await scope.channels.find(channel);
  // Through one that only receives for now it waits, and is among those that are tried now and then.
  if (binding?.state !== 'enabled' && binding?.state !== 'receive_only') {
    const why = binding === undefined ? 'is not connected' : `is ${binding.state}`;
    return { status: 'failed', messageId: null, eventId: null, reason: `${toAppName(channel)} ${why}.` };
  }
  const sessionId = deriveSessionId(contactsAgent, channel, await scope.contacts.findCanonicalSender(channel, to));
  try {
    const kept = await scope.outbox.accept({ kind: 'message', channel, to, sessionId, text, agent, turnId: turn.id, callId });
    return { status: 'kept', messageId: kept.message.id, eventId: null, reason: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { status: 'failed', messageId: null, eventId: null, reason: error.message };
  }
}

async function emit(
  { scope, webhookEvents }: RunInScope,
  url: string,
  webhookEvent: WebhookEventInput<'schedule.completed'> | WebhookEventInput<'schedule.failing'>,
): Promise<RunDelivery> {
  try {
    return { status: 'kept', messageId: null, eventId: await webhookEvents.emitTo(scope, url, webhookEvent), reason: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { status: 'failed', messageId: null, eventId: null, reason: error.message };
  }
}
