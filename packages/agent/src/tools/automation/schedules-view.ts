import type { Schedule, SchedulePatch, ScheduleRun } from '@concierge/contract';
import type { BrokenSchedule, ScheduleRequest } from '@concierge/tenant';

/** The tenant's schedules, as the turn may see and change them. */
export interface SchedulesView {
  /** Of the tenant, where a schedule names none. */
  timezone(): Promise<string>;
  /** In words: how far apart two runs must be. */
  minDistanceMs(): Promise<number>;
  list(): Promise<{ readonly schedules: readonly Schedule[]; readonly broken: readonly BrokenSchedule[] }>;
  find(id: string): Promise<Schedule | undefined>;
  /** The same call, made again, is the same schedule. @throws ToolError in a turn that must not, AppError for what cannot be used */
  create(request: ScheduleRequest, callId: string): Promise<Schedule>;
  update(id: string, patch: SchedulePatch): Promise<Schedule>;
  remove(id: string): Promise<void>;
  /** Once, beside its times. The same call, made again, is the same run. */
  run(id: string, callId: string): Promise<ScheduleRun>;
  /** The newest first. */
  runs(id: string, limit: number): Promise<readonly ScheduleRun[]>;
}
