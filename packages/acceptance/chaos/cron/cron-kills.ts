import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { durationMs, Schedule, type ScheduleRun } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { eventually, startScriptedModel, System, type ServiceProcess } from '@concierge/testing';
import { timesReady } from '../rolling-restart.ts';
import { SeededRandom } from '../load/seeded-random.ts';

export interface CronKills {
  readonly seed: number;
  readonly schedules: number;
  /** Duration in which times are due and replicas are killed. */
  readonly overMs: number;
  /** How often Redis is emptied, spread over the run. */
  readonly flushes: number;
  readonly tree?: string | undefined;
}

export interface CronKillsReport {
  readonly ticks: number;
  readonly turns: number;
  readonly kills: number;
  /** Times without a run, without a turn or with a turn that is another's; turns without a time. */
  readonly findings: readonly string[];
}

const REPLICAS = 3;
const AT_AFTER_MS = 2000;
const EVERY = '6s';
/** A replica, a worker and what they run take this long on a machine that has much else to do. */
const SETTLE_TIMEOUT_MS = 240_000;
const KILL_EVERY_MS = { least: 150, most: 450 };

/** The least number of kills in a run, however long they take. */
const KILLS_AT_LEAST = 20;
const READY_TIMEOUT_MS = 180_000;
const DECIDED_TIMEOUT_MS = 180_000;
const STEP_TIMEOUT_MS = 180_000;

/**
 * Three replicas, one of them killed every moment and started again, while many schedules are due; every time is one
 * turn.
 */
export async function runCronKills({ seed, schedules, overMs, flushes, tree }: CronKills): Promise<CronKillsReport> {
  await using stack = new AsyncDisposableStack();
  const model = await startScriptedModel();
  stack.defer(async () => await model.close());
  const system = stack.use(await System.start({ modelUrl: model.url, crons: REPLICAS, workers: 2, tree }));
  const tenantId = `cron-${randomBytes(4).toString('hex')}`;
  await system.createTenant(tenantId);
  const scope = await system.scope(tenantId);
  const fromMs = Date.now();
  const made = await Promise.all(Array.from({ length: schedules }, async (_, index) => writeSchedule(scope, fromMs + index * 97)));
  const kills = await killReplicas(system, { random: new SeededRandom(seed), overMs, flushes });
  const untilMs = Date.now();
  // Replicas that were killed a moment ago have to start before they can decide what became due meanwhile.
  await eventually(async () => (await undecided(scope, made, untilMs)).length === 0, { timeoutMs: DECIDED_TIMEOUT_MS, everyMs: 250 }).catch(
    () => undefined,
  );
  // What is not looked at any more after this has nothing due later.
  for (const schedule of made) await scope.schedules.update(schedule.id, { enabled: false, name: 'Over' });
  await eventually(async () => (await openRuns(scope, made)).length === 0, { timeoutMs: SETTLE_TIMEOUT_MS, everyMs: 250 }).catch(
    () => undefined,
  );
  return { ...(await audit(scope, made, untilMs)), kills };
}

/** One schedule for one moment; the only replica dies at the fail point, and another one goes on. */
export async function runCronKillAt(
  failpoint: string,
): Promise<{ readonly runs: readonly { readonly outcome: string; readonly status: string | undefined }[]; readonly turns: number }> {
  await using stack = new AsyncDisposableStack();
  const model = await startScriptedModel();
  stack.defer(async () => await model.close());
  const system = stack.use(await System.start({ modelUrl: model.url, crons: 1 }));
  await system.createTenant('acme');
  const scope = await system.scope('acme');
  const [cron] = system.crons;
  await cron?.kill();
  // A machine that stands still for so long is asked for another time: one that is past is refused.
  const made = await eventually(async () =>
    scope.schedules.create(
      { name: 'Once', message: '[[say:once]]', schedule: { at: new Date(Date.now() + AT_AFTER_MS).toISOString() } },
      { by: { kind: 'operator' }, authority: 'admin' },
    ),
  );
  cron?.start({ FAILPOINT: failpoint });
  await eventually(() => cron?.endedBy === 'SIGKILL', { timeoutMs: STEP_TIMEOUT_MS });
  cron?.start();
  const list = async (): Promise<ScheduleRun[]> => scope.schedules.runs.list(made.id, 10);
  await eventually(async () => (await list())[0]?.turn?.status === 'done', { timeoutMs: STEP_TIMEOUT_MS });
  const runs = (await list()).map(({ outcome, turn }) => ({ outcome, status: turn?.status }));
  // The end of a turn waits for the index for two seconds, and no longer.
  const turns = await eventually(async () => (await listTurnIds(scope)).length, { timeoutMs: STEP_TIMEOUT_MS });
  return { runs, turns };
}

/** Closer together than the API accepts, so that a short run has many times. */
async function writeSchedule(scope: TenantScope, countsFromMs: number): Promise<Schedule> {
  const id = `s_${randomBytes(16).toString('hex')}`;
  const at = new Date(countsFromMs).toISOString();
  const what = { name: 'Tick', agent: 'admin', message: '[[say:tick]]', schedule: { every: EVERY }, deliver: null, alert: null };
  const rules = { missed: 'run_all', overlap: 'queue', jitterSeconds: 0, enabled: true, authority: 'admin', tools: [] };
  const made = { createdBy: { kind: 'operator' }, createdAt: at, updatedAt: at, countsFrom: at };
  const schedule = Schedule.parse({ version: 1, id, ...what, ...rules, ...made });
  const folder = join(scope.root, 'cron');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${id}.json`), JSON.stringify(schedule));
  return schedule;
}

interface Faults {
  readonly random: SeededRandom;
  readonly overMs: number;
  readonly flushes: number;
}

/**
 * Never the last one that works: a replica needs a while to start, on a busy machine longer than from one kill to the
 * next.
 */
async function killReplicas(system: System, { random, overMs, flushes }: Faults): Promise<number> {
  const { crons, redis } = system;
  const readyBefore = new Map<ServiceProcess, number>();
  const works = async (replica: ServiceProcess): Promise<boolean> => (await timesReady(system, replica)) > (readyBefore.get(replica) ?? 0);
  const isSpared = async (victim: ServiceProcess): Promise<boolean> => {
    const others = await Promise.all(crons.filter((replica) => replica !== victim).map(works));
    return others.some(Boolean);
  };
  const endMs = Date.now() + overMs;
  const flushEveryMs = overMs / (flushes + 1);
  let nextFlushMs = Date.now() + flushEveryMs;
  let kills = 0;
  while (Date.now() < endMs || kills < KILLS_AT_LEAST) {
    await wait(random.between(KILL_EVERY_MS.least, KILL_EVERY_MS.most));
    const replica = random.pick(crons);
    if (kills % REPLICAS !== 0) await wait(KILL_EVERY_MS.most);
    await eventually(async () => await isSpared(replica), { timeoutMs: READY_TIMEOUT_MS });
    await replica.kill();
    readyBefore.set(replica, await timesReady(system, replica));
    replica.start();
    kills += 1;
    if (Date.now() < nextFlushMs || flushes === 0) continue;
    await redis.flush();
    nextFlushMs += flushEveryMs;
  }
  return kills;
}

async function openRuns(scope: TenantScope, schedules: readonly Schedule[]): Promise<ScheduleRun[]> {
  const open = await Promise.all(schedules.map(async ({ id }) => scope.schedules.runs.open(id)));
  return open.flat();
}

/** Judges by files alone: definitions give the times, histories their outcomes, sessions the runs. */
async function audit(scope: TenantScope, schedules: readonly Schedule[], untilMs: number): Promise<Omit<CronKillsReport, 'kills'>> {
  const findings: string[] = [];
  const turnIds: string[] = [];
  let ticks = 0;
  findings.push(...(await undecided(scope, schedules, untilMs)));
  for (const schedule of schedules) {
    const { id } = schedule;
    ticks += listTimes(schedule, untilMs).length;
    const runs = new Map((await scope.schedules.runs.list(id, 1000)).map((run) => [Date.parse(run.scheduledAt), run]));
    for (const [atMs, { outcome, turn }] of runs) {
      if (outcome === 'ran' && turn?.status !== 'done')
        findings.push(`${id} ${String(atMs)}: ran, but its turn is ${turn?.status ?? 'none'}`);
      if (outcome === 'missed') findings.push(`${id} ${String(atMs)}: missed`);
      if (turn !== null) turnIds.push(turn.id);
    }
  }
  findings.push(...(await strays(scope, turnIds)));
  return { ticks, turns: turnIds.length, findings };
}

/** The very last times are decided, or not, while the schedule is paused. */
const LAST_MS = 15_000;

/** When a schedule was due. */
function listTimes({ countsFrom }: Schedule, untilMs: number): number[] {
  const everyMs = durationMs(EVERY);
  const firstMs = Date.parse(countsFrom) + everyMs;
  const count = Math.max(0, Math.ceil((untilMs - LAST_MS - firstMs) / everyMs));
  return Array.from({ length: count }, (_, index) => firstMs + index * everyMs);
}

/** Times without a run. */
async function undecided(scope: TenantScope, schedules: readonly Schedule[], untilMs: number): Promise<string[]> {
  const missing = await Promise.all(
    schedules.map(async (schedule) => {
      const decided = new Set((await scope.schedules.runs.list(schedule.id, 1000)).map((run) => Date.parse(run.scheduledAt)));
      const times = listTimes(schedule, untilMs).filter((atMs) => !decided.has(atMs));
      return times.map((atMs) => `${schedule.id} ${String(atMs)}: nothing was decided`);
    }),
  );
  return missing.flat();
}

/** Turns of two times, and turns in sessions that no time has. */
async function strays(scope: TenantScope, turnIds: readonly string[]): Promise<string[]> {
  const known = new Set(turnIds);
  const findings = known.size === turnIds.length ? [] : ['two times have one turn'];
  // On a busy machine the index is behind the ends of the last ones. What it does not get is found.
  const areListed = async (): Promise<boolean> => {
    const listed = new Set(await listTurnIds(scope));
    return turnIds.every((id) => listed.has(id));
  };
  await eventually(areListed, { timeoutMs: SETTLE_TIMEOUT_MS, everyMs: 250 }).catch(() => undefined);
  for (const id of await listTurnIds(scope)) if (!known.delete(id)) findings.push(`turn ${id} belongs to no time`);
  return [...findings, ...[...known].map((id) => `turn ${id} ran nowhere`)];
}

/** Of all turns that the index has. */
async function listTurnIds({ index }: TenantScope): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await index.listTurns({ limit: 100, ...(cursor === undefined ? {} : { cursor }) });
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return ids;
}
