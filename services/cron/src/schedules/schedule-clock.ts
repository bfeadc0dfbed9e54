import { background, duringActivity, type Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import type { ClaimedSchedule, DueSchedules, ScheduleKey } from '@concierge/turn';
import { heartbeatName } from './heartbeat.ts';
import type { ScheduleAttention } from './schedule-attention.ts';

const TICK_EVERY_MS = 500;
const SCAN_EVERY_AT_LEAST_MS = 2000;
/** A look through all tenants' schedules costs at most a twentieth of this replica's time. */
const SCAN_LOAD = 20;
const CLAIMED_AT_ONCE = 32;
/** Of one tick: the next one goes on. */
const ROUNDS_PER_TICK = 50;
/** After a failure that may pass. */
const AGAIN_AFTER_MS = 2000;

export interface ScheduleClockOptions {
  readonly due: DueSchedules;
  readonly tenants: Tenants;
  readonly attention: Pick<ScheduleAttention, 'attend'>;
  readonly log: Log;
  readonly now: () => number;
}

/**
 * Looks after schedules, in every replica: those whose time has come, by the sorted set in Redis, and those whose files have changed. What this
 * process knows are only the marks of files; a replica that is started, or a Redis that came back empty, has every schedule looked at once.
 */
export class ScheduleClock {
  readonly #options: ScheduleClockOptions;
  readonly #marks = new Map<string, ReadonlyMap<string, string>>();
  #timer: NodeJS.Timeout | undefined;
  #ticking: Promise<void> | undefined;
  #nextScanMs = 0;

  constructor(options: ScheduleClockOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => {
      if (this.#ticking !== undefined) return;
      this.#ticking = this.#tick().finally(() => {
        this.#ticking = undefined;
      });
      background(this.#ticking, this.#options.log);
    }, TICK_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#ticking?.catch(() => undefined);
  }

  /** Calls for every schedule whose files have changed since the last time. */
  async scan(): Promise<void> {
    const { due, tenants } = this.#options;
    const isLaid = await due.isLaid();
    const changed: ScheduleKey[] = [];
    const accountIds = await tenants.list();
    for (const accountId of accountIds) {
      const before = isLaid ? this.#marks.get(accountId) : undefined;
      const marks = new Map(await tenants.scheduleMarks(accountId)).set(heartbeatName, await tenants.settingsMark(accountId));
      for (const [scheduleId, mark] of marks) if (before?.get(scheduleId) !== mark) changed.push({ accountId, scheduleId });
      this.#marks.set(accountId, marks);
    }
    const known = new Set(accountIds);
    for (const accountId of this.#marks.keys()) if (!known.has(accountId)) this.#marks.delete(accountId);
    if (isLaid) await due.callFor(changed);
    else await due.layAll(changed);
  }

  /** Attends to everything that is due, once. */
  async fire(): Promise<void> {
    const { due, now } = this.#options;
    for (let round = 0; round < ROUNDS_PER_TICK; round += 1) {
      const claimed = await due.claim(now(), CLAIMED_AT_ONCE);
      await Promise.all(claimed.map(async (claim) => this.#attend(claim)));
      if (claimed.length < CLAIMED_AT_ONCE) return;
    }
  }

  /** Scans are timed by the process's own clock, which no step of the machine's changes. */
  async #tick(): Promise<void> {
    const beganMs = performance.now();
    if (beganMs >= this.#nextScanMs) {
      await this.scan();
      const tookMs = performance.now() - beganMs;
      this.#nextScanMs = beganMs + Math.max(SCAN_EVERY_AT_LEAST_MS, tookMs * SCAN_LOAD);
    }
    await this.fire();
  }

  async #attend(claim: ClaimedSchedule): Promise<void> {
    const { due, log } = this.#options;
    const { accountId, scheduleId } = claim;
    const nextMs = await duringActivity({ accountId, scheduleId }, async () => this.#lookAt(claim)).catch((error: unknown) => {
      log.error({ err: error, accountId, scheduleId }, 'a schedule could not be looked after');
      return this.#options.now() + AGAIN_AFTER_MS;
    });
    await due.plan(claim, nextMs);
  }

  async #lookAt({ accountId, scheduleId }: ClaimedSchedule): Promise<number | null> {
    const { tenants, attention } = this.#options;
    const scope = await tenants.find(accountId);
    return scope === undefined ? null : attention.attend(scope, scheduleId);
  }
}
