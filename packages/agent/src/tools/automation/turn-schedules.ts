import type { AcceptedTurn, Schedule, SchedulePatch, ScheduleRun } from '@concierge/contract';
import { minDistanceMs, type BrokenSchedule, type ScheduleRequest, type TenantScope } from '@concierge/tenant';
import type { ToolAccess } from '../tool-access.ts';
import { ToolError } from '../tool-error.ts';

const defaultZone = 'UTC';

export interface SchedulesSource {
  readonly scope: Pick<TenantScope, 'schedules' | 'settings'>;
  readonly turn: Pick<AcceptedTurn, 'agent' | 'authority' | 'grant' | 'origin' | 'turnId'>;
  readonly access: ToolAccess;
  /**
   * Names of the tools the turn may have at most; undefined: all that its access gives. What it schedules has no more.
   */
  readonly allow?: readonly string[] | undefined;
}

/**
 * Schedules as one turn may use them. Only a turn that a message started makes schedules: a schedule that makes
 * schedules never ends.
 */
export class TurnSchedules {
  readonly #source: SchedulesSource;

  constructor(source: SchedulesSource) {
    this.#source = source;
  }

  /** The tenant's time zone, for a schedule that names none. */
  async timezone(): Promise<string> {
    return (await this.#source.scope.settings()).timezone ?? defaultZone;
  }

  /** How far apart two runs must be. */
  async minDistanceMs(): Promise<number> {
    return minDistanceMs((await this.#source.scope.settings()).plan);
  }

  async list(): Promise<{ schedules: readonly Schedule[]; broken: readonly BrokenSchedule[] }> {
    this.#assertAdmin();
    return this.#source.scope.schedules.list();
  }

  async find(id: string): Promise<Schedule | undefined> {
    this.#assertAdmin();
    return this.#source.scope.schedules.find(id);
  }

  /**
   * The same call, made again, is the same schedule.
   * @throws ToolError in a turn that must not, AppError for what cannot be used
   */
  async create(request: ScheduleRequest, callId: string): Promise<Schedule> {
    this.#assertMayChange();
    const { agent, authority, turnId } = this.#source.turn;
    const by = { kind: 'agent', agent, turnId } as const;
    const requestId = JSON.stringify([turnId, callId]);
    return this.#source.scope.schedules.create(request, { by, authority, tools: this.#source.allow, requestId });
  }

  async update(id: string, patch: SchedulePatch): Promise<Schedule> {
    this.#assertMayChange();
    return this.#source.scope.schedules.update(id, patch, this.#source.allow);
  }

  async remove(id: string): Promise<void> {
    this.#assertMayChange();
    await this.#source.scope.schedules.remove(id);
  }

  /** Starts one run beside the schedule's times. The same call, made again, is the same run. */
  async run(id: string, callId: string): Promise<ScheduleRun> {
    this.#assertMayChange();
    return this.#source.scope.schedules.run(id, JSON.stringify([this.#source.turn.turnId, callId]));
  }

  /** The newest first. */
  async runs(id: string, limit: number): Promise<readonly ScheduleRun[]> {
    this.#assertAdmin();
    return this.#source.scope.schedules.history(id, limit);
  }

  #assertMayChange(): void {
    this.#assertAdmin();
    const { origin, grant } = this.#source.turn;
    if (origin === 'schedule' || origin === 'heartbeat')
      throw new ToolError(
        'This turn was started by a schedule: it cannot make or change schedules. Tell the owner what should be changed.',
      );
    if (origin === 'subagent' || grant !== undefined)
      throw new ToolError('A sub-agent cannot make or change schedules. Say in your result what should be scheduled.');
  }

  #assertAdmin(): void {
    if (this.#source.access !== 'admin') throw new ToolError('Schedules are for the owner’s agent only.');
  }
}
