import {
  MINUTE_MS,
  channelSynonyms,
  durationMs,
  readRecipient,
  ScheduleId,
  type Schedule,
  type ScheduleRun,
  type TenantSettings,
} from '@concierge/contract';
import { hashParts } from '@concierge/runtime';
import { jitterMs, minDistanceMs, ZoneClock, type TenantScope } from '@concierge/tenant';

/** The name of the tenant's heartbeat in the due set in Redis. */
export const heartbeatName = 'heartbeat';

/** The agent's whole answer when nothing is to be done: its conversation is then removed. */
export const heartbeatToken = 'HEARTBEAT_OK';

const DEFAULT_EVERY = '30m';
const DAY_MINUTES = 24 * 60;

const message = `This is your heartbeat: nobody has written. HEARTBEAT, above, says what to look after. Do what is due now, as far as your tools allow, and tell the owner only what they should know: your answer is sent to them. When nothing is to be done, answer with ${heartbeatToken} and nothing else.`;

/**
 * The heartbeat that tenant.json asks for, as a schedule; undefined when it asks for none. Its times have a fixed
 * interval, with an offset for each tenant. No missed time is made up for: it counts from the last one that could still
 * be in time.
 */
export async function readHeartbeat(scope: TenantScope, nowMs: number): Promise<Schedule | undefined> {
  const { heartbeat, plan, handoff } = await scope.settings();
  if (heartbeat === undefined) return undefined;
  const id = deriveHeartbeatId(scope.tenantId);
  const leastMs = minDistanceMs(plan);
  const asked = heartbeat.every ?? DEFAULT_EVERY;
  const every = durationMs(asked) < leastMs ? `${String(leastMs / MINUTE_MS)}m` : asked;
  const everyMs = durationMs(every);
  const offsetMs = jitterMs({ id, jitterSeconds: everyMs / 1000 });
  const lastMs = Math.floor((nowMs - offsetMs) / everyMs) * everyMs + offsetMs;
  const at = new Date(nowMs - lastMs <= MINUTE_MS ? lastMs - everyMs : lastMs).toISOString();
  return {
    version: 1,
    id,
    name: heartbeatName,
    agent: 'admin',
    message,
    schedule: { every },
    deliver: toDestination(heartbeat.deliver ?? handoff?.notify),
    missed: 'skip',
    overlap: 'skip',
    jitterSeconds: 0,
    alert: null,
    enabled: true,
    authority: 'admin',
    tools: null,
    createdBy: { kind: 'operator' },
    createdAt: at,
    updatedAt: at,
    countsFrom: at,
  };
}

/**
 * The recipient of a heartbeat's answer: `heartbeat.deliver`, by default `handoff.notify` (the owner); null where there
 * is none.
 */
function toDestination(asked: NonNullable<TenantSettings['heartbeat']>['deliver']): Schedule['deliver'] {
  if (asked === undefined) return null;
  const channel = channelSynonyms[asked.channel];
  return { channel, to: readRecipient(channel, asked.to) ?? asked.to };
}

/** Whether the agent only answered that nothing is to be done. */
export function isQuiet(text: string): boolean {
  return text.trim() === heartbeatToken;
}

/** The folder of its runs: beside those of the schedules. */
export function deriveHeartbeatId(tenantId: string): string {
  return ScheduleId.parse(`s_${hashParts([heartbeatName, tenantId], { separator: 'json', digits: 32 })}`);
}

/** Why a due heartbeat is skipped; null when it is not. */
export async function heartbeatBlockedReason(scope: TenantScope, nowMs: number): Promise<string | null> {
  const { heartbeat, timezone = 'UTC' } = await scope.settings();
  if (heartbeat?.activeHours !== undefined && !isWithin(heartbeat.activeHours, new ZoneClock(timezone).wallAt(nowMs)))
    return `it is outside the active hours ${heartbeat.activeHours}`;
  const context = await scope.context.load({ agent: 'admin', sender: null, memory: 'owner' });
  if (context.heartbeat === null) return 'HEARTBEAT.md says nothing';
  return (await scope.inbox.turnIds()).length > 0 ? 'a turn is under way' : null;
}

/** Removes the conversation of a heartbeat without a message to the owner. */
export async function silence(scope: TenantScope, { turn }: ScheduleRun): Promise<void> {
  if (turn?.status !== 'done') return;
  const session = await scope.sessions.view(turn.contact_id);
  const last = session?.messages.findLast(({ role }) => role === 'assistant');
  if (last?.role === 'assistant' && isQuiet(last.text)) await scope.removeSession(turn.contact_id);
}

/** `08:00-20:00`, the end left out; over midnight when it ends before it begins, the whole day when both are equal. */
function isWithin(hours: string, wallMs: number): boolean {
  const [from = 0, to = 0] = hours.split('-').map((text) => {
    const [hour = 0, minute = 0] = text.split(':').map(Number);
    return hour * 60 + minute;
  });
  const now = Math.floor(wallMs / MINUTE_MS) % DAY_MINUTES;
  if (from === to) return true;
  return from < to ? now >= from && now < to : now >= from || now < to;
}
