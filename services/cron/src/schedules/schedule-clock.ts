import type { Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import { DueQueue, DueWorker, Reconciler, unhurried, type DueClaim, type DueKey, type DueQueueOptions } from '@concierge/turn';
import { heartbeatName } from './heartbeat.ts';
import type { ScheduleRunner } from './schedule-runner.ts';

const TICK_EVERY_MS = 500;
const SCAN_EVERY_MS = 2000;
const CLAIM_MS = 5000;
/** The wait after a transient failure. */
const AGAIN_AFTER_MS = 2000;

/** Of the files of one tenant's schedules, by name. */
type Versions = ReadonlyMap<string, string>;

export interface ScheduleClockOptions {
  readonly redis: DueQueueOptions['redis'];
  readonly tenants: Tenants;
  readonly runner: Pick<ScheduleRunner, 'reconcile'>;
  readonly log: Log;
  readonly now: () => number;
}

/**
 * Processes schedules, in every replica: those that are due, by the due set in Redis, and those whose files have
 * changed. The process keeps only the versions of files; when a replica starts or Redis comes back empty, every
 * schedule is processed once.
 */
export class ScheduleClock extends Reconciler {
  readonly name = 'schedules';
  readonly #options: ScheduleClockOptions;
  readonly #due: DueQueue;
  readonly #worker: DueWorker;
  /** By tenant, of all schedules that are planned. */
  #versions: ReadonlyMap<string, Versions> = new Map();

  constructor(options: ScheduleClockOptions) {
    const { redis, now, log } = options;
    super({ everyMs: TICK_EVERY_MS, log });
    this.#options = options;
    // Schedules have times of day: replicas poll for them, by their own clock.
    this.#due = new DueQueue({ redis, kind: 'schedules', wakes: false, clock: now, claimMs: CLAIM_MS, log });
    const handle = async (claim: DueClaim): Promise<number | null> => this.#reconcile(claim);
    this.#worker = new DueWorker({ queue: this.#due, handle, concurrency: 1, afterFailureMs: AGAIN_AFTER_MS, log });
  }

  override start(): void {
    this.#worker.start();
    super.start();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#worker.stop(0);
  }

  override async reconcile(): Promise<void> {
    await this.atTimes({ task: 'scan', everyMs: SCAN_EVERY_MS }, async () => this.scan());
    await this.fire();
  }

  /** Plans every schedule whose files have changed since the last call. */
  async scan(): Promise<void> {
    const { tenants, log } = this.#options;
    const isComplete = await this.#due.isComplete();
    const seen = new Map<string, Versions>();
    const changed: DueKey[] = [];
    for await (const tenantId of unhurried(await tenants.list())) {
      const before = isComplete ? this.#versions.get(tenantId) : undefined;
      try {
        const versions = (await tenants.scheduleVersions(tenantId)).set(heartbeatName, await tenants.settingsVersion(tenantId));
        changed.push(...(await this.#changes(tenantId, before, versions)));
        seen.set(tenantId, versions);
      } catch (error) {
        // It is looked at again; the others' schedules do not wait for it.
        log.warn({ tenantId, err: error }, 'the schedules of a tenant cannot be looked at');
        if (before !== undefined) seen.set(tenantId, before);
      }
    }
    if (isComplete) await this.#due.add(changed.map((key) => ({ ...key, delayMs: 0 })));
    else await this.#due.addAll(changed);
    // Not before: what Redis has refused has to be found again.
    this.#versions = seen;
  }

  /** Processes everything that is due, once. */
  async fire(): Promise<void> {
    await this.#worker.poll();
  }

  async #changes(tenantId: string, before: Versions | undefined, versions: Versions): Promise<DueKey[]> {
    const changed = [...versions.keys()].filter((name) => before?.get(name) !== versions.get(name));
    // Most tenants have no heartbeat: they are not opened to find that out.
    const isAsked = before !== undefined || !changed.includes(heartbeatName) || (await this.#options.tenants.mayAskForHeartbeat(tenantId));
    return changed.filter((name) => isAsked || name !== heartbeatName).map((name) => ({ tenantId, name }));
  }

  async #reconcile({ tenantId, name }: DueClaim): Promise<number | null> {
    const { tenants, runner, now } = this.#options;
    const scope = await tenants.find(tenantId);
    const nextMs = scope === undefined ? null : await runner.reconcile(scope, name);
    return nextMs === null ? null : Math.max(1, nextMs - now());
  }
}
