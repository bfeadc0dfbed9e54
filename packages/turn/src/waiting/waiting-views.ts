import { TENANT_TREND, waitReasons, type Overview, type WaitingEntry, type WaitingPage, type WorkerView } from '@concierge/contract';
import { describeWait } from './describe-wait.ts';
import type { WaitingLook, WaitingTurns } from './waiting-turns.ts';
import type { ReportedWorker } from './workers.ts';

type Sums = WaitingPage['reasons'];

/** How much waits for each reason. Conversations with staff are no part of a look at Redis. */
export function sumWaiting({ waiting, atMs }: Pick<WaitingLook, 'waiting' | 'atMs'>): Sums {
  const reasons = waitReasons.filter((reason) => reason !== 'staff');
  return reasons.map((reason) => {
    const own = waiting.filter((turns) => turns.reason === reason);
    const oldestMs = Math.min(...own.map(({ sinceMs }) => sinceMs));
    return {
      reason,
      turns: own.reduce((sum, { count }) => sum + count, 0),
      oldestSeconds: own.length === 0 ? null : toSeconds(atMs - oldestMs),
    };
  });
}

/** Tenants of one answer. */
const TENANTS_MAX = 100;
const noTrend: readonly number[] = Array.from({ length: TENANT_TREND.points }, () => 0);

/**
 * How much waits of each tenant and how much of its share runs: those whose turns wait longest, and they first.
 * `trends`: how much has waited of each (`LoadSeries.readTenants`).
 */
export function sumTenants(look: WaitingLook, trends: ReadonlyMap<string, readonly number[]>): WaitingPage['tenants'] {
  const groups = Array.from(
    Map.groupBy(look.waiting, ({ tenantId }) => tenantId),
    ([tenantId, waiting]) => ({
      tenantId,
      turns: waiting.reduce((sum, { count }) => sum + count, 0),
      oldestSeconds: toSeconds(look.atMs - Math.min(...waiting.map(({ sinceMs }) => sinceMs))),
      running: look.running.get(tenantId) ?? 0,
      places: look.share,
      reasons: sumWaiting({ waiting, atMs: look.atMs }).filter(({ turns }) => turns > 0),
      recent: [...(trends.get(tenantId) ?? noTrend)],
    }),
  );
  return groups.toSorted((left, right) => right.oldestSeconds - left.oldestSeconds).slice(0, TENANTS_MAX);
}

export function viewWaiting(turns: WaitingTurns, look: WaitingLook): WaitingEntry {
  const { turnId, tenantId, sessionId, agent, count, sinceMs } = turns;
  const since = new Date(sinceMs).toISOString();
  const waitedSeconds = toSeconds(look.atMs - sinceMs);
  return { ...describeWait(turns, look), turnId, tenantId, contact_id: sessionId, agent, turns: count, since, waitedSeconds };
}

export function viewWorker({
  id,
  version,
  state,
  isDrained,
  startedAt,
  concurrency,
  turns,
  stallMs,
  silentMs,
}: ReportedWorker): WorkerView {
  return {
    id,
    version,
    state,
    isDrained,
    startedAt,
    slots: concurrency,
    running: turns.length,
    turns,
    stallMs: Math.round(stallMs),
    silentMs: Math.round(silentMs),
  };
}

export function viewOverview(look: WaitingLook): Overview {
  const reasons = sumWaiting(look);
  const inState = (state: ReportedWorker['state']): ReportedWorker[] => look.workers.filter((worker) => worker.state === state);
  const running = look.workers.reduce((sum, { turns }) => sum + turns.length, 0);
  const slots = inState('running').reduce((sum, { concurrency }) => sum + concurrency, 0);
  const workers = {
    running: inState('running').length,
    draining: inState('draining').length,
    stalled: inState('stalled').length,
  };
  const oldest = findOldest(look);
  const longest =
    oldest === undefined
      ? null
      : { tenantId: oldest.tenantId, reason: oldest.reason, waitedSeconds: toSeconds(look.atMs - oldest.sinceMs) };
  const summary = summarise(look, oldest, workers.running);
  return { at: new Date(look.atMs).toISOString(), summary, longest, reasons, running, slots, workers };
}

/** The longest wait that is not of a conversation's own making. */
function findOldest({ waiting }: WaitingLook): WaitingTurns | undefined {
  return waiting
    .filter(({ reason }) => reason !== 'debounce' && reason !== 'own_session')
    .toSorted((left, right) => left.sinceMs - right.sinceMs)
    .at(0);
}

function summarise(look: WaitingLook, oldest: WaitingTurns | undefined, runningWorkers: number): string {
  if (oldest !== undefined) {
    const seconds = toSeconds(look.atMs - oldest.sinceMs);
    return `${oldest.tenantId}: a turn has waited ${String(Math.round(seconds))} s. ${describeWait(oldest, look).why}`;
  }
  if (runningWorkers === 0) return 'No worker takes turns.';
  const turns = look.waiting.reduce((sum, { count }) => sum + count, 0);
  return turns === 0 ? 'All well: nothing waits.' : `All well: ${String(turns)} wait, all of them for their own conversations.`;
}

function toSeconds(ms: number): number {
  return Math.max(0, Math.round(ms / 100) / 10);
}
