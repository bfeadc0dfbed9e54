import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { AppError, HOUR_MS, limits, RunDeliveryEnd, ScheduleRun, ScheduleRunId, type ScheduleRunView } from '@concierge/contract';
import { lstatIfThere, RecordFolder, removeFolderIn, type FolderSync, type RecordFolderOptions, unlessLater } from '@concierge/files';
import { hashParts, type Log } from '@concierge/runtime';

const runNames = /^(?:r_\d{15}|n_[0-9a-f]{32})$/u;
const deliveryNames = /^(?:r_\d{15}|n_[0-9a-f]{32})\.delivery$/u;
/** An older missed run was reported by the process that wrote it down, or by the replica that came after it. */
const TELL_MS = HOUR_MS;

export interface ScheduleRunsOptions {
  readonly tenantId: string;
  /** tenants/<id>/cron */
  readonly folder: string;
  readonly folders: FolderSync;
  /** Called when what is known of a run of this schedule has changed. */
  readonly onChanged?: ((scheduleId: string) => void) | undefined;
  readonly log: Log;
  readonly now?: (() => number) | undefined;
}

/** What has been decided about one time. */
export type RunDecision = Pick<ScheduleRun, 'id' | 'scheduledAt' | 'trigger' | 'outcome'> &
  Partial<Pick<ScheduleRun, 'reason' | 'missedSince'>>;

/**
 * What became of a schedule's times, a file each. The name follows from the time and is taken once: of several who
 * decide about one time at the same moment, the first one counts, whatever Redis or a clock shows later.
 */
export class ScheduleRuns {
  readonly #options: ScheduleRunsOptions;
  /** Runs of which nothing more is to come, so that a look at a schedule reads only the others. */
  readonly #settled = new SeenRuns();
  /** Runs that this process has looked at to see whether they were missed. */
  readonly #reported = new SeenRuns();

  constructor(options: ScheduleRunsOptions) {
    this.#options = options;
  }

  /** The newest first. */
  async list(scheduleId: string, limit: number): Promise<ScheduleRun[]> {
    const records = this.#records(scheduleId);
    const runs = await Promise.all((await this.#names(scheduleId)).map(async (name) => unlessLater(records.find(name))));
    return runs
      .filter((run) => run !== undefined)
      .toSorted((a, b) => b.scheduledAt.localeCompare(a.scheduledAt) || b.id.localeCompare(a.id))
      .slice(0, limit);
  }

  /** As it stands now: with how the sending of its reply ended. */
  async withDelivery(run: ScheduleRun): Promise<ScheduleRun> {
    if (run.delivery?.status !== 'kept' || run.delivery.eventId === null) return run;
    const end = await this.#deliveries(run.scheduleId).find(toDeliveryName(run.id));
    if (end?.eventId !== run.delivery.eventId) return run;
    return { ...run, delivery: { ...run.delivery, status: end.status, reason: end.reason } };
  }

  /**
   * For the sender of a reply: a separate file, since the run's file is written by the process that fires schedules.
   * Does nothing for a run that is gone.
   */
  async noteDelivery(scheduleId: string, runId: string, end: Omit<RunDeliveryEnd, 'version'>): Promise<void> {
    if ((await this.find(scheduleId, runId)) !== undefined)
      await this.#deliveries(scheduleId).put(toDeliveryName(runId), { version: 1, ...end });
  }

  async find(scheduleId: string, runId: string): Promise<ScheduleRun | undefined> {
    return this.#records(scheduleId).find(runId);
  }

  /** The runs that wait or are under way, the oldest first. */
  async open(scheduleId: string): Promise<ScheduleRun[]> {
    const records = this.#records(scheduleId);
    const open: ScheduleRun[] = [];
    const names = await this.#names(scheduleId);
    const settled = this.#settled.among(scheduleId, names);
    for (const name of names) {
      if (settled.has(name)) continue;
      const run = await unlessLater(records.find(name));
      if (run !== undefined && isSettled(run)) settled.add(name);
      else if (run !== undefined) open.push(run);
    }
    return open.toSorted((a, b) => a.scheduledAt.localeCompare(b.scheduledAt) || a.id.localeCompare(b.id));
  }

  /** The latest time, up to this one, of which something is decided; undefined when there is none. */
  async lastTickMs(scheduleId: string, untilMs: number): Promise<number | undefined> {
    return (await this.#names(scheduleId))
      .filter((name) => name.startsWith('r_'))
      .map((name) => Number(name.slice(2)))
      .findLast((tickMs) => tickMs <= untilMs);
  }

  /** On disk when it returns; false when another process has decided before. */
  async decide(scheduleId: string, { reason = null, missedSince = null, ...decision }: RunDecision): Promise<boolean> {
    const recordedAt = new Date(this.#nowMs()).toISOString();
    const rest = { recordedAt, turn: null, delivery: null, alertedAt: null };
    const run = ScheduleRun.parse({ version: 1, scheduleId, ...decision, reason, missedSince, ...rest });
    return this.#records(scheduleId).create(run.id, run);
  }

  /**
   * Calls for each missed run that any process wrote down in the last hour: once in each process, so that none is lost
   * with the one that wrote it.
   */
  async reportMissed(scheduleId: string, report: (run: ScheduleRun) => Promise<void>): Promise<void> {
    const records = this.#records(scheduleId);
    const names = await this.#names(scheduleId);
    const reported = this.#reported.among(scheduleId, names);
    for (const name of names) {
      if (reported.has(name)) continue;
      const run = await unlessLater(records.find(name));
      const isNew = run !== undefined && Date.parse(run.recordedAt) > this.#nowMs() - TELL_MS;
      if (isNew && run.outcome === 'missed') await report(run);
      // What becomes of a time is decided once: one that was not missed never will be.
      reported.add(name);
    }
  }

  async put(run: ScheduleRun): Promise<void> {
    await this.#records(run.scheduleId).put(run.id, run);
  }

  /** A run beside the schedule's times. The same request is the same run. @throws AppError too_many_waiting */
  async ask(scheduleId: string, requestId: string | undefined): Promise<ScheduleRun> {
    const id = toAskedId(scheduleId, requestId);
    const known = await this.find(scheduleId, id);
    if (known !== undefined) return known;
    const waiting = (await this.open(scheduleId)).filter(({ outcome, trigger }) => outcome === 'waiting' && trigger === 'manual');
    if (waiting.length >= limits.scheduleAskedMax)
      throw new AppError('too_many_waiting', `${String(waiting.length)} runs of this schedule wait to be started already.`);
    const scheduledAt = new Date(this.#nowMs()).toISOString();
    await this.decide(scheduleId, { id, scheduledAt, trigger: 'manual', outcome: 'waiting' });
    const made = await this.find(scheduleId, id);
    if (made === undefined) throw new AppError('not_found', 'There is no such schedule.');
    return made;
  }

  view(run: ScheduleRun): ScheduleRunView {
    const { id, scheduledAt, trigger, outcome, reason, missedSince, recordedAt, turn, delivery, alertedAt } = run;
    return { id, scheduledAt, trigger, outcome, reason, missedSince, recordedAt, turn, delivery, alertedAt };
  }

  /**
   * Keeps only the newest finished runs, that of the latest time, without which earlier times were decided again, and
   * the last one of which its owner was notified: the cool-down that it begins may be longer than so many runs.
   */
  async prune(scheduleId: string): Promise<void> {
    const names = await this.#names(scheduleId);
    if (names.length <= limits.scheduleRunsKept) return;
    const latest = names.findLast((name) => name.startsWith('r_'));
    const settled = this.#settled.among(scheduleId, names);
    const runs = await this.list(scheduleId, names.length);
    const alerted = runs.findIndex(({ alertedAt }) => alertedAt !== null);
    const kept = limits.scheduleRunsKept - (alerted < limits.scheduleRunsKept ? 0 : 1);
    for (const [index, { id }] of runs.entries()) {
      if (index < kept || index === alerted || id === latest || !settled.has(id)) continue;
      await this.#records(scheduleId).remove(id);
      await this.#deliveries(scheduleId).remove(toDeliveryName(id));
    }
  }

  /** The whole history of a schedule that is gone. */
  async forget(scheduleId: string): Promise<void> {
    await removeFolderIn(this.#options.folder, scheduleId);
    this.#settled.forget(scheduleId);
    this.#reported.forget(scheduleId);
  }

  async sweep(scheduleId: string): Promise<void> {
    await this.#records(scheduleId).sweep();
  }

  /** Most schedules that are looked at have not run yet: to look is a tenth of a directory read that fails. */
  async #names(scheduleId: string): Promise<string[]> {
    const isThere = (await lstatIfThere(join(this.#options.folder, scheduleId))) !== undefined;
    return isThere ? this.#records(scheduleId).names() : [];
  }

  #place(
    scheduleId: string,
  ): Pick<RecordFolderOptions<typeof ScheduleRun>, 'folder' | 'store' | 'folders' | 'tenantId' | 'onChanged' | 'log'> {
    const { folder, folders, tenantId, onChanged, log } = this.#options;
    const place = { folder: join(folder, scheduleId), store: folder, folders, tenantId, log };
    return { ...place, onChanged: onChanged && (() => onChanged(scheduleId)) };
  }

  #records(scheduleId: string): RecordFolder<typeof ScheduleRun> {
    return new RecordFolder({ ...this.#place(scheduleId), schema: ScheduleRun, names: runNames });
  }

  #deliveries(scheduleId: string): RecordFolder<typeof RunDeliveryEnd> {
    return new RecordFolder({ ...this.#place(scheduleId), schema: RunDeliveryEnd, names: deliveryNames });
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/**
 * Runs that a process need not look at again, by schedule. A set holds no more names than the schedule's folder does,
 * and a tenant without schedules holds none: with 10,000 open tenants, anything that is allocated ahead of use is
 * allocated 10,000 times.
 */
class SeenRuns {
  readonly #bySchedule = new Map<string, Set<string>>();

  /** The present names that were seen; the caller adds to it. */
  among(scheduleId: string, names: readonly string[]): Set<string> {
    const before = this.#bySchedule.get(scheduleId);
    const present = new Set(before === undefined ? [] : names.filter((name) => before.has(name)));
    if (names.length === 0) this.#bySchedule.delete(scheduleId);
    else this.#bySchedule.set(scheduleId, present);
    return present;
  }

  forget(scheduleId: string): void {
    this.#bySchedule.delete(scheduleId);
  }
}

function toDeliveryName(runId: string): string {
  return `${runId}.delivery`;
}

/** The run of a time. */
export function toRunId(tickMs: number): string {
  return ScheduleRunId.parse(`r_${String(tickMs).padStart(15, '0')}`);
}

function toAskedId(scheduleId: string, requestId: string | undefined): string {
  if (requestId === undefined) return `n_${randomBytes(16).toString('hex')}`;
  return `n_${hashParts(['run', scheduleId, requestId], { separator: 'json', digits: 32 })}`;
}

/** Nothing more is to come. */
function isSettled({ outcome, turn }: ScheduleRun): boolean {
  if (outcome === 'missed' || outcome === 'skipped') return true;
  return outcome === 'ran' && turn !== null && turn.status !== 'waiting';
}
