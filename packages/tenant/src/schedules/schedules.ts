import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  AppError,
  channelDefinitions,
  intersectTools,
  durationMs,
  limits,
  NewSchedule,
  readRecipient,
  Schedule,
  SchedulePatch,
  ScheduleId,
  ScheduleTiming,
  type Actor,
  type Authority,
  type ScheduleRun,
  type ScheduleTimes,
  type ScheduleView,
  type TenantSettings,
  parseInput,
} from '@concierge/contract';
import { isSystemError, lstatIfThere, namesIn, RecordFolder, toStatSignature, type FolderSync } from '@concierge/files';
import { hashParts, KeyedMutex, type Log } from '@concierge/runtime';
import { z } from 'zod';
import type { Outbox } from '../outbox/outbox.ts';
import { ScheduleRuns } from './schedule-runs.ts';
import { assertTiming, nextRunMs, writeNextRuns } from './schedule-times.ts';

const usedFields = ['agent', 'alert', 'deliver'] as const;

/** What a client may leave out. */
export type ScheduleRequest = z.input<typeof NewSchedule>;

export interface ScheduleOrigin {
  readonly by: Actor;
  readonly authority: Authority;
  /**
   * What its turns may have at most: the tools of an agent that makes it. Left out: all that the schedule’s agent has.
   */
  readonly tools?: readonly string[] | undefined;
  /** Names the request, so that it makes one schedule however often it is made; random when left out. */
  readonly requestId?: string;
}

export interface BrokenSchedule {
  readonly id: string;
  readonly reason: string;
}

export interface SchedulesOptions {
  readonly tenantId: string;
  /** tenants/<id>/cron */
  readonly folder: string;
  readonly folders: FolderSync;
  /** Called when this schedule or a run of it has changed. */
  readonly onChanged?: ((scheduleId: string) => void) | undefined;
  readonly log: Log;
  readonly plan: () => Promise<TenantSettings['plan']>;
  /** Makes sure that replies can be sent to this URL. */
  readonly ensureEndpoint: (url: string) => Promise<void>;
  readonly hasAgent: (name: string) => Promise<boolean>;
  /** Messages that runs have sent; without them a run reports only that its reply was kept. */
  readonly outbox?: Pick<Outbox, 'delivery'>;
  readonly now?: () => number;
}

/**
 * A tenant's schedules, a file each. When two changes to one schedule happen at the same moment, the later one stays,
 * whole.
 */
export class Schedules {
  /** What became of their times. */
  readonly runs: ScheduleRuns;
  readonly #options: SchedulesOptions;
  readonly #records: RecordFolder<typeof Schedule>;
  readonly #writers = new KeyedMutex();

  constructor(options: SchedulesOptions) {
    const { folder, folders, tenantId, onChanged, log, now } = options;
    const place = { folder, folders, tenantId, onChanged, log };
    this.#options = options;
    this.runs = new ScheduleRuns({ ...place, now });
    this.#records = new RecordFolder({ ...place, schema: Schedule, names: /^s_[0-9a-f]{32}$/u });
  }

  /** The oldest first; what cannot be read beside them. */
  async list(): Promise<{ readonly schedules: Schedule[]; readonly broken: BrokenSchedule[] }> {
    const schedules: Schedule[] = [];
    const broken: BrokenSchedule[] = [];
    for (const id of await this.#records.names()) {
      const read = await this.#records.read(id);
      if (read?.status === 'broken') broken.push({ id, reason: read.reason });
      else if (read?.value.id === id) schedules.push(read.value);
      else if (read !== undefined) broken.push({ id, reason: `it contains the id ${read.value.id}` });
    }
    return { schedules: schedules.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt) || a.id.localeCompare(b.id)), broken };
  }

  async find(id: string): Promise<Schedule | undefined> {
    const schedule = await this.#records.find(id);
    return schedule?.id === id ? schedule : undefined;
  }

  /** Has the schedule a file, valid or not? */
  async isThere(id: string): Promise<boolean> {
    return (await this.#records.names()).includes(id);
  }

  /** @throws AppError not_found */
  async get(id: string): Promise<Schedule> {
    return this.#existing(id);
  }

  /** On disk when it returns. @throws AppError invalid_request, conflict (as many as the plan allows) */
  async create(request: ScheduleRequest, origin: ScheduleOrigin): Promise<Schedule> {
    const wanted = parseInput(NewSchedule, request, 'The schedule');
    await this.#assertTiming(wanted);
    await this.#assertUsable(wanted);
    const id = toScheduleId(this.#options.tenantId, origin.requestId);
    const at = new Date(this.#nowMs()).toISOString();
    const { authority, by: createdBy } = origin;
    const tools = origin.tools === undefined ? null : [...origin.tools];
    const schedule: Schedule = { version: 1, id, ...wanted, authority, tools, createdBy, createdAt: at, updatedAt: at, countsFrom: at };
    return this.#writers.run('create', async () => {
      const existing = await this.find(id);
      if (existing !== undefined) return existing;
      await this.#assertRoom();
      await this.#records.create(id, schedule);
      return (await this.find(id)) ?? schedule;
    });
  }

  /**
   * With `tools`, those of an agent that changes it, its turns have no more than these from then on.
   * @throws AppError not_found, invalid_request
   */
  async update(id: string, patch: SchedulePatch, tools?: readonly string[]): Promise<Schedule> {
    const changes = withoutUndefined(parseInput(SchedulePatch, patch, 'The schedule'));
    return this.#writers.run(id, async () => {
      const before = await this.#existing(id);
      const at = new Date(this.#nowMs()).toISOString();
      const isRestarted = changes.schedule !== undefined || (changes.enabled === true && !before.enabled);
      const ceiling = { tools: narrowed(before.tools, tools) };
      const after: Schedule = { ...before, ...changes, ...ceiling, updatedAt: at, countsFrom: isRestarted ? at : before.countsFrom };
      if (isRestarted) await this.#assertTiming(after);
      // One whose agent has gone since must still be paused or renamed.
      if (isRestarted || usedFields.some((field) => changes[field] !== undefined)) await this.#assertUsable(after);
      await this.#records.put(id, after);
      return after;
    });
  }

  /** @throws AppError not_found */
  async remove(id: string): Promise<void> {
    if (!(await this.#records.remove(id))) throw noSuchSchedule();
    await this.runs.forget(id);
  }

  /**
   * Runs it beside its times, paused or not, as soon as the process that fires schedules sees it.
   * @throws AppError not_found, too_many_waiting
   */
  async run(id: string, requestId?: string): Promise<ScheduleRun> {
    await this.#existing(id);
    return this.runs.ask(id, requestId);
  }

  /** The newest first, with what has become of their replies by now. @throws AppError not_found */
  async history(id: string, limit: number): Promise<ScheduleRun[]> {
    await this.#existing(id);
    return Promise.all((await this.runs.list(id, limit)).map(async (run) => this.#withDelivery(run)));
  }

  view(schedule: Schedule): ScheduleView {
    const { id, name, agent, message, schedule: timing, deliver, missed, overlap, jitterSeconds, alert, enabled } = schedule;
    const { createdBy, createdAt, updatedAt } = schedule;
    const shown = { id, name, agent, message, schedule: timing, deliver, missed, overlap, jitterSeconds, alert, enabled };
    const nowMs = this.#nowMs();
    const nextMs = enabled ? nextRunMs(schedule, nowMs) : null;
    const nextRunAt = nextMs === null ? null : new Date(nextMs).toISOString();
    const nextRuns = enabled ? writeNextRuns(schedule, nowMs, limits.scheduleNextRuns) : [];
    return { ...shown, createdBy, createdAt, updatedAt, nextRunAt, nextRuns };
  }

  /**
   * The next times of a schedule that is not made, counted from now, without jitter.
   * @throws AppError invalid_request, in the words in which `create` refuses it
   */
  async previewTimes(timing: unknown): Promise<ScheduleTimes> {
    const { schedule } = parseInput(z.strictObject({ schedule: ScheduleTiming }), { schedule: timing }, 'The schedule');
    await this.#assertTiming({ schedule });
    const nowMs = this.#nowMs();
    const timed = { id: '', schedule, countsFrom: new Date(nowMs).toISOString(), jitterSeconds: 0 };
    return { nextRuns: writeNextRuns(timed, nowMs, limits.scheduleNextRuns) };
  }

  async sweep(): Promise<void> {
    await this.#records.sweep();
    for (const id of await this.#records.names()) await this.runs.sweep(id);
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }

  async #withDelivery(run: ScheduleRun): Promise<ScheduleRun> {
    const { delivery } = run;
    const { outbox } = this.#options;
    if (delivery?.eventId != null) return this.runs.withDelivery(run);
    if (outbox === undefined || delivery?.status !== 'kept' || delivery.messageId === null) return run;
    const found = await outbox.delivery(delivery.messageId);
    if (found === undefined) return { ...run, delivery: { ...delivery, status: 'forgotten' } };
    const { state, problem } = found;
    return { ...run, delivery: { ...delivery, status: state === 'waiting' ? 'kept' : state, reason: problem?.message ?? null } };
  }

  async #existing(id: string): Promise<Schedule> {
    const schedule = await this.find(id);
    if (schedule === undefined) throw noSuchSchedule();
    return schedule;
  }

  async #assertTiming({ schedule }: Pick<NewSchedule, 'schedule'>): Promise<void> {
    assertTiming(schedule, { nowMs: this.#nowMs(), plan: await this.#options.plan() });
  }

  async #assertUsable({ agent, alert, deliver }: Pick<NewSchedule, 'agent' | 'alert' | 'deliver'>): Promise<void> {
    if (alert !== null && durationMs(alert.cooldown) < limits.scheduleMinMs) throw invalid('alert.cooldown', 'must be at least a minute');
    if (deliver !== null && 'to' in deliver && readRecipient(deliver.channel, deliver.to) === undefined)
      throw invalid('deliver.to', `must be ${channelDefinitions[deliver.channel].recipient.words}`);
    if (!(await this.#options.hasAgent(agent))) throw invalid('agent', `there is no agent ${agent}`);
    if (deliver !== null && 'webhook' in deliver) await this.#options.ensureEndpoint(deliver.webhook);
  }

  /**
   * Two processes at the same moment may each make the last one: a bound for reason's sake, not a quota to be exact
   * about.
   */
  async #assertRoom(): Promise<void> {
    const max = (await this.#options.plan()) === 'preview' ? limits.previewSchedulesMax : limits.schedulesMax;
    if ((await this.#records.names()).length >= max)
      throw new AppError('conflict', `There are ${String(max)} schedules, as many as this plan allows: remove one first.`);
  }
}

function toScheduleId(tenantId: string, requestId: string | undefined): string {
  if (requestId === undefined) return ScheduleId.parse(`s_${randomBytes(16).toString('hex')}`);
  return ScheduleId.parse(`s_${hashParts(['schedule', tenantId, requestId], { separator: 'json', digits: 32 })}`);
}

function narrowed(before: string[] | null, tools: readonly string[] | undefined): string[] | null {
  const common = intersectTools(before ?? undefined, tools);
  return common === undefined ? null : [...common];
}

/** A field that is given as undefined is one that is left out. */
function withoutUndefined(patch: SchedulePatch): { [Name in keyof SchedulePatch]?: Exclude<SchedulePatch[Name], undefined> } {
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));
}

function invalid(path: string, message: string): AppError {
  return new AppError('invalid_request', `The schedule cannot be used: ${message}.`, { errors: [{ path, message }] });
}

function noSuchSchedule(): AppError {
  return new AppError('not_found', 'There is no such schedule.');
}

const definition = /^(s_[0-9a-f]{32})\.json$/u;

/** Ids of the schedules in the folder. */
export async function scheduleIdsIn(folder: string): Promise<string[]> {
  const files = await namesIn(folder);
  return files.map((file) => definition.exec(file)?.[1]).filter((id) => id !== undefined);
}

/** A version for each of the schedules that differs after each change of its definition or its history. */
export async function markSchedules(folder: string, ids: readonly string[]): Promise<Map<string, string>> {
  const versions = new Map<string, string>();
  for (const id of ids) {
    versions.set(id, `${await fileMark(join(folder, `${id}.json`))} ${await fileMark(join(folder, id))}`);
  }
  return versions;
}

/** Another one after each change of what is there; a dash for nothing. */
export async function fileMark(path: string): Promise<string> {
  const stats = await lstatIfThere(path);
  if (stats?.isSymbolicLink() !== true) return stats === undefined ? '-' : toStatSignature(stats);
  try {
    return toStatSignature(await stat(path));
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return '-';
    throw error;
  }
}
