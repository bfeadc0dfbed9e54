import { background, startPart, type ServiceParts } from '@concierge/runtime';
import { LogKeeper, ProcessAnnouncement, readRunningProcesses, type ProcessFacts } from '@concierge/turn';
import type { Core } from './open-core.ts';

/** Connections to PostgreSQL: what the deployment may open, and what there is. */
export interface ConnectionBudget {
  readonly processes: number;
  /** The sum of the pools of all processes that run. */
  readonly needed: number;
  /** max_connections less what is reserved and what other clients have open. */
  readonly available: number;
  readonly max: number;
  readonly reserved: number;
  readonly others: number;
}

/** Undefined with SQLite, which has no such limit. */
export async function readConnectionBudget(
  index: Pick<Core['index'], 'readConnectionLimits'>,
  readProcesses: () => Promise<readonly ProcessFacts[]>,
): Promise<ConnectionBudget | undefined> {
  const limits = await index.readConnectionLimits();
  if (limits === undefined) return undefined;
  const running = (await readProcesses()).filter(({ databasePool }) => databasePool > 0);
  const needed = running.reduce((sum, { databasePool }) => sum + databasePool, 0);
  return { ...limits, processes: running.length, needed, available: Math.max(0, limits.max - limits.reserved - limits.others) };
}

export function describeShortage({ processes, needed, available, max, reserved, others }: ConnectionBudget): string {
  const there = `${String(available)} are there (max_connections ${String(max)}, ${String(reserved)} reserved, ${String(others)} in use by other clients)`;
  return `${String(processes)} processes may open ${String(needed)} connections to PostgreSQL, and ${there}: lower DATABASE_POOL or raise max_connections`;
}

export interface Announced {
  readonly service: string;
  /** Of its configuration. */
  readonly databaseUrl: string | undefined;
  readonly databasePool: number;
  /** Of cron: whether it sends e-mails to owners. */
  readonly sendsEmail?: boolean | undefined;
}

/**
 * Announces this process until the stack closes, keeps what operators look up in its log, and warns where all that run
 * may together open more connections than there are. Nothing waits for it, and nothing depends on it.
 */
export function announceProcess(
  { service, databaseUrl, databasePool, sendsEmail }: Announced,
  core: Pick<Core, 'redis' | 'index'>,
  { stack, log }: ServiceParts,
): void {
  const pool = databaseUrl === undefined ? 0 : databasePool;
  const announcement = new ProcessAnnouncement({ redis: core.redis, service, databasePool: pool, sendsEmail, log });
  startPart(stack, new LogKeeper(core.redis, log));
  const started = announcement.start();
  stack.defer(async () => {
    await started.catch(() => undefined);
    await announcement.stop();
  });
  const warn = async (): Promise<void> => {
    await started;
    // A database that does not answer has its own line in the log.
    const budget =
      pool === 0 ? undefined : await readConnectionBudget(core.index, async () => readRunningProcesses(core.redis)).catch(() => undefined);
    if (budget !== undefined && budget.needed > budget.available) log.warn({ ...budget }, describeShortage(budget));
  };
  background(warn(), log);
}
