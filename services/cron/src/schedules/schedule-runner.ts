import { hash } from 'node:crypto';
import type { RunTurn, Schedule, ScheduleRun, TurnInput } from '@concierge/contract';
import { failpoint, Figures, type Log } from '@concierge/runtime';
import { nextRunMs, type TenantScope } from '@concierge/tenant';
import { hasBudget, scheduleMissed, type Budgets, type WebhookEvents, type Turns } from '@concierge/turn';
import { decideDue } from './due-runs.ts';
import { heartbeatBlockedReason, deriveHeartbeatId, heartbeatName, readHeartbeat, silence } from './heartbeat.ts';
import { deliverAlert, deliverReply, endOfTurn, failuresInARow, failuresToReport } from './run-end.ts';
import type { Counter, Histogram, Registry } from 'prom-client';

/** How soon a waiting or running run is checked again. */
const OPEN_RUN_MS = 1000;
/** This many failed runs in a row count as a schedule that keeps failing, unless its owner has set another number. */
const FAILING_RUNS = 3;
const SUSPENDED = 'the tenant is suspended';

export interface ScheduleRunnerOptions {
  readonly turns: Pick<Turns, 'accept'>;
  readonly webhookEvents: Pick<WebhookEvents, 'emit' | 'emitTo'>;
  readonly budgets: Pick<Budgets, 'schedulesBlockedReason'>;
  readonly metrics: ScheduleMetrics;
  readonly log: Log;
  readonly now: () => number;
}

/**
 * Handles one schedule at any time: ends runs whose turns have ended, decides about due times, starts the oldest
 * waiting run. Every step is a file that is made once or a turn whose id is derived from the run, so several processes
 * that do it at the same moment do it once.
 *
 * A run: (none) → waiting → ran, its turn not accepted → ran, its turn under way → ran, with the end of its turn. Or
 * missed, or skipped.
 */
export class ScheduleRunner {
  readonly #options: ScheduleRunnerOptions;

  constructor(options: ScheduleRunnerOptions) {
    this.#options = options;
  }

  /**
   * Returns when to check again; null when nothing is left to do. `name`: the id of a schedule, or the heartbeat's
   * name.
   */
  async reconcile(scope: TenantScope, name: string): Promise<number | null> {
    const isHeartbeat = name === heartbeatName;
    const schedule = isHeartbeat ? await readHeartbeat(scope, this.#nowMs()) : await scope.schedules.find(name);
    const { runs } = scope.schedules;
    if (schedule === undefined) {
      // A replica may have written about a run while its schedule was being removed.
      if (!isHeartbeat && !(await scope.schedules.isThere(name))) await runs.forget(name);
      return null;
    }
    const { id: scheduleId } = schedule;
    const tenantReason = await this.#tenantBlockedReason(scope);
    let open = await this.#endRuns(scope, schedule, await runs.open(scheduleId));
    if (schedule.enabled) {
      const blockedReason = tenantReason ?? (isHeartbeat ? await heartbeatBlockedReason(scope, this.#nowMs()) : null);
      await this.#decide(schedule, scope, { open, blockedReason });
    }
    await runs.reportMissed(scheduleId, async (run) => this.#options.webhookEvents.emit(scope, scheduleMissed(schedule, run)));
    open = await this.#leaveOut(scope, await runs.open(scheduleId), { tenantReason, isPaused: !schedule.enabled });
    await this.#startNext(scope, schedule, open);
    await runs.prune(scheduleId);
    if (open.length > 0) return this.#nowMs() + OPEN_RUN_MS;
    return schedule.enabled ? nextRunMs(schedule, this.#nowMs()) : null;
  }

  async #decide(schedule: Schedule, scope: TenantScope, { open, blockedReason }: Situation): Promise<void> {
    const nowMs = this.#nowMs();
    const { runs } = scope.schedules;
    const lastMs = await runs.lastTickMs(schedule.id, nowMs);
    const due = decideDue(schedule, {
      afterMs: Math.max(Date.parse(schedule.countsFrom), lastMs ?? 0),
      nowMs,
      isRunning: open.some(({ outcome }) => outcome === 'ran'),
      isWaiting: open.some(({ outcome }) => outcome === 'waiting'),
      blockedReason,
    });
    for (const decision of due) {
      const isFirst = await runs.decide(schedule.id, decision);
      if (isFirst && decision.outcome !== 'waiting') {
        const { outcome, scheduledAt, reason } = decision;
        this.#options.metrics.ended(outcome);
        this.#options.log.info({ ...this.#logFacts(scope, schedule), outcome, scheduledAt, reason }, 'a run was left out');
      }
    }
    await failpoint('schedule.after-decision');
  }

  /** Why no schedule of the tenant may start a run; null when they may. */
  async #tenantBlockedReason(scope: TenantScope): Promise<string | null> {
    const settings = await scope.settings();
    if (settings.suspended === true) return SUSPENDED;
    return hasBudget(settings) ? await this.#options.budgets.schedulesBlockedReason(scope) : null;
  }

  /**
   * Skips runs that waited when their schedule was paused or their tenant stopped. A run that was asked for is the
   * owner's message, which a budget ends like any other.
   */
  async #leaveOut(scope: TenantScope, open: readonly ScheduleRun[], why: BlockedReason): Promise<ScheduleRun[]> {
    const left: ScheduleRun[] = [];
    for (const run of open) {
      const { tenantReason } = why;
      const isHindered = tenantReason === SUSPENDED || ((why.isPaused || tenantReason !== null) && run.trigger === 'schedule');
      if (run.outcome !== 'waiting' || !isHindered) left.push(run);
      else {
        const reason = tenantReason ?? 'the schedule was paused before it began';
        await scope.schedules.runs.put({ ...run, outcome: 'skipped', reason });
      }
    }
    return left;
  }

  async #startNext(scope: TenantScope, schedule: Schedule, open: readonly ScheduleRun[]): Promise<void> {
    if (open.some(({ outcome }) => outcome === 'ran')) return;
    const next = open.find(({ outcome }) => outcome === 'waiting');
    if (next === undefined) return;
    const started: ScheduleRun = { ...next, outcome: 'ran' };
    await scope.schedules.runs.put(started);
    if (started.trigger === 'schedule') this.#options.metrics.started(this.#nowMs() - Date.parse(started.scheduledAt));
    await failpoint('schedule.after-start');
    await this.#acceptTurn(scope, schedule, started);
  }

  /** A run whose starter died before its turn was accepted is accepted here: the same turn. */
  async #acceptTurn(scope: TenantScope, schedule: Schedule, run: ScheduleRun): Promise<ScheduleRun> {
    const { turnId, sessionId } = await this.#options.turns.accept(
      scope,
      buildTurnInput(schedule, run, schedule.id === deriveHeartbeatId(scope.tenantId) ? 'heartbeat' : 'schedule'),
    );
    await failpoint('schedule.after-accept');
    const accepted: ScheduleRun = { ...run, turn: { id: turnId, contact_id: sessionId, status: 'waiting', error: null } };
    const known = await scope.schedules.runs.find(schedule.id, run.id);
    if (known === undefined || known.turn !== null) return known ?? accepted;
    await scope.schedules.runs.put(accepted);
    this.#options.log.info({ ...this.#logFacts(scope, schedule), turnId, scheduledAt: run.scheduledAt }, 'a schedule was fired');
    return accepted;
  }

  /** @returns the runs that are still open afterwards */
  async #endRuns(scope: TenantScope, schedule: Schedule, open: readonly ScheduleRun[]): Promise<ScheduleRun[]> {
    const left: ScheduleRun[] = [];
    for (const run of open) {
      const begun = run.outcome === 'ran' && run.turn === null ? await this.#acceptTurn(scope, schedule, run) : run;
      if (begun.outcome === 'waiting' || !(await this.#end(scope, schedule, begun))) left.push(begun);
    }
    return left;
  }

  async #end(scope: TenantScope, schedule: Schedule, run: ScheduleRun): Promise<boolean> {
    const turn = run.turn === null ? undefined : await endOfTurn(scope, run.turn);
    if (turn === undefined) return false;
    const ending = { scope, webhookEvents: this.#options.webhookEvents, schedule, run };
    const delivery = await deliverReply(ending, turn);
    const { runs } = scope.schedules;
    const earlier = (await runs.list(schedule.id, Infinity)).filter(({ id }) => id !== run.id);
    const failed = failuresToReport(schedule, turn, { earlier, nowMs: this.#nowMs() });
    if (failed !== undefined) {
      await deliverAlert(ending, failed);
      this.#options.log.error({ ...this.#logFacts(scope, schedule), failures: failed.failures }, 'a schedule keeps failing');
    }
    this.#count(schedule, turn, earlier);
    const alertedAt = failed === undefined ? null : new Date(this.#nowMs()).toISOString();
    await failpoint('schedule.before-end');
    const ended: ScheduleRun = { ...run, turn, delivery, alertedAt };
    // Another replica may have ended it since and removed the conversation.
    if (turn.status !== 'lost' || (await runs.find(schedule.id, run.id))?.turn?.status === 'waiting') await runs.put(ended);
    if (schedule.id === deriveHeartbeatId(scope.tenantId)) await silence(scope, ended);
    return true;
  }

  #count({ alert }: Schedule, turn: RunTurn, earlier: readonly ScheduleRun[]): void {
    this.#options.metrics.ended(turn.status);
    if (failuresInARow(turn, earlier) >= (alert?.afterFailures ?? FAILING_RUNS)) this.#options.metrics.keepsFailing();
  }

  #logFacts({ tenantId }: TenantScope, { id: scheduleId }: Schedule): { tenantId: string; scheduleId: string } {
    return { tenantId, scheduleId };
  }

  #nowMs(): number {
    return this.#options.now();
  }
}

interface Situation {
  readonly open: readonly ScheduleRun[];
  readonly blockedReason: string | null;
}

interface BlockedReason {
  readonly tenantReason: string | null;
  readonly isPaused: boolean;
}

/** Each run is a separate conversation, with the rights and at most the tools that the schedule was made with. */
function buildTurnInput({ id, agent, authority, message, tools }: Schedule, run: ScheduleRun, origin: 'schedule' | 'heartbeat'): TurnInput {
  const dedupeId = `schedule:${id}:${run.id}`;
  return {
    origin,
    agent,
    authority,
    channel: 'web',
    sender: null,
    contactId: null,
    text: message,
    attachments: [],
    busy: 'queue',
    dedupeId,
    // The hash covers the run alone: a message that changed while its turn was being accepted does not make another
    // turn.
    requestHash: hash('sha256', dedupeId),
    keyId: null,
    ...(tools === null ? {} : { tools }),
  };
}

/** Metrics of schedules; labels name no tenant and no schedule. */
export class ScheduleMetrics {
  readonly #runs: Counter;
  readonly #failing: Counter;
  readonly #lag: Histogram;

  constructor(registry: Registry) {
    const figures = new Figures(registry);
    this.#runs = figures.counter('concierge_schedule_runs_total');
    this.#failing = figures.counter('concierge_schedule_failing_total');
    this.#lag = figures.histogram('concierge_schedule_lag_seconds');
  }

  /** `lateMs`: since the time for which it was planned. */
  started(lateMs: number): void {
    this.#lag.observe(Math.max(0, lateMs) / 1000);
  }

  ended(outcome: string): void {
    this.#runs.inc({ outcome });
  }

  keepsFailing(): void {
    this.#failing.inc();
  }
}
