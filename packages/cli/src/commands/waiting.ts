import type { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { AppError, logLevels, SeriesRange, type LogLine, type Overview, type WaitingEntry, type WorkerView } from '@concierge/contract';
import { isUnavailable } from '@concierge/runtime';
import { Command, Option } from 'commander';
import type { WaitingLook } from '@concierge/turn';
import { facts, table, type CommandContext } from '../answer.ts';

const REDRAW_EVERY_MS = 2000;
/** Rows of `top`: what waits longest. */
const TOP_ROWS = 10;
/** Cursor home, then clear what is below: nothing flickers. */
const HOME = '\u001B[H\u001B[J';
const AWAY = '\nRedis does not answer: this is what was seen last.\n';

interface WaitingOptions {
  readonly tenant?: string;
  readonly limit: string;
}

interface Looked {
  readonly overview: Overview;
  readonly waiting: WaitingEntry[];
  readonly workers: WorkerView[];
  readonly isWhole: boolean;
}

async function look({ deployment }: CommandContext, tenant?: string): Promise<Looked> {
  const [redis, { WaitingRoom, viewOverview, viewWaiting, viewWorker }] = [await deployment.redis(), await import('@concierge/turn')];
  const found: WaitingLook = await new WaitingRoom(redis).look();
  const asked = found.waiting.filter((turns) => tenant === undefined || turns.tenantId === tenant);
  return {
    overview: viewOverview(found),
    waiting: asked.toSorted((left, right) => left.sinceMs - right.sinceMs).map((turns) => viewWaiting(turns, found)),
    workers: found.workers.map(viewWorker),
    isWhole: found.isWhole,
  };
}

function waitingTable(waiting: readonly WaitingEntry[]): string {
  const head = ['WAITED', 'TENANT', 'AGENT', 'TURNS', 'FIRST TURN', 'WHY', 'STARTS WHEN'];
  return table(
    head,
    waiting.map((entry) => [
      `${entry.waitedSeconds.toFixed(1)} s`,
      entry.tenantId,
      entry.agent,
      String(entry.turns),
      entry.turnId,
      entry.why,
      entry.startsWhen,
    ]),
  );
}

function workersTable(workers: readonly WorkerView[]): string {
  const head = ['WORKER', 'STATE', 'VERSION', 'STARTED', 'RUNNING', 'SLOTS', 'LAST HEARD'];
  return table(
    head,
    workers.map(({ id, state, version, startedAt, running, slots, silentMs }) => [
      id,
      state,
      version,
      startedAt,
      String(running),
      String(slots),
      `${(silentMs / 1000).toFixed(1)} s ago`,
    ]),
  );
}

async function listWaiting(context: CommandContext, { tenant, limit }: WaitingOptions): Promise<void> {
  const rows = Number(limit);
  if (!Number.isSafeInteger(rows) || rows < 1) throw new AppError('invalid_request', `${limit} is not a number of rows.`);
  const { waiting, isWhole } = await look(context, tenant);
  const shown = waiting.slice(0, rows);
  const rest = waiting.length > shown.length ? [`${String(waiting.length - shown.length)} more wait.`] : [];
  const partial = isWhole ? [] : ['More is under way than one look reads: at least this waits.'];
  const text = waiting.length === 0 ? 'No turn waits.' : [waitingTable(shown), ...rest, ...partial].join('\n');
  context.answer({ json: shown, text });
}

async function listWorkers(context: CommandContext): Promise<void> {
  const { workers } = await look(context);
  const text = workers.length === 0 ? 'No worker lives.' : workersTable(workers);
  context.answer({ json: workers, text, failed: !workers.some(({ state }) => state === 'running') });
}

function screen({ overview, waiting, workers }: Looked): string {
  const sums = overview.reasons.filter(({ turns }) => turns > 0).map(({ reason, turns }) => `${reason} ${String(turns)}`);
  const head = facts({
    now: overview.at,
    summary: overview.summary,
    running: `${String(overview.running)} of ${String(overview.slots)} slots`,
    waiting: sums.length === 0 ? 'none' : sums.join(' · '),
  });
  return [head, '', workersTable(workers), '', waitingTable(waiting.slice(0, TOP_ROWS))].join('\n');
}

/** On a terminal until Ctrl-C, redrawn in place; once where it is piped. */
async function showTop(context: CommandContext): Promise<void> {
  const { terminal, answer } = context;
  const first = await look(context);
  if (terminal === undefined || !('isTTY' in terminal) || terminal.isTTY !== true) {
    const { overview, waiting, workers } = first;
    answer({ json: { ...overview, workers, waiting: waiting.slice(0, TOP_ROWS) }, text: screen(first) });
    return;
  }
  const stopped = new AbortController();
  process.once('SIGINT', () => {
    stopped.abort();
  });
  await redraw(first, { look: async () => look(context), terminal, everyMs: REDRAW_EVERY_MS, signal: stopped.signal });
}

interface Redrawing {
  readonly look: () => Promise<Looked>;
  readonly terminal: Writable;
  readonly everyMs: number;
  readonly signal: AbortSignal;
}

/** What was seen last stays on the screen while Redis is away: a restart of it is when this is watched. */
export async function redraw(first: Looked, { look: lookAgain, terminal, everyMs, signal }: Redrawing): Promise<void> {
  let [seen, note] = [first, ''];
  while (!signal.aborted) {
    terminal.write(`${HOME}${screen(seen)}\n${note}`);
    await wait(everyMs, undefined, { signal }).catch(() => undefined);
    const found = await lookAgain().catch(unlessAway);
    seen = found ?? seen;
    note = found === undefined ? AWAY : '';
  }
}

/** Rethrows what no wait mends. */
function unlessAway(error: unknown): undefined {
  if (isUnavailable(error)) return undefined;
  throw error;
}

/** `concierge waiting` */
export function waitingCommand(context: CommandContext): Command {
  return new Command('waiting')
    .option('--tenant <tenant>', 'of this tenant alone')
    .option('--limit <count>', 'rows at most', '50')
    .action(async (options: WaitingOptions) => await listWaiting(context, options));
}

/** `concierge worker …` */
export function workerCommand(context: CommandContext): Command {
  const command = new Command('worker');
  command
    .command('list')
    .description('workers that live, and what they run; fails when none takes turns')
    .action(async () => await listWorkers(context));
  command
    .command('drain <id>')
    .description('have it take no new turns; what it runs goes on')
    .action(async (id: string) => await drain(context, id, true));
  command
    .command('undrain <id>')
    .description('have it take turns again')
    .action(async (id: string) => await drain(context, id, false));
  return command;
}

async function drain({ deployment, answer }: CommandContext, id: string, isDrained: boolean): Promise<void> {
  const [redis, { setDrained, viewWorker }] = [await deployment.redis(), await import('@concierge/turn')];
  const worker = await setDrained(redis, id, isDrained);
  if (worker === undefined) throw new AppError('not_found', `No worker ${id} lives: concierge worker list`);
  await (await deployment.tenantOperations()).recordForDeployment(isDrained ? 'worker.drain' : 'worker.undrain', id);
  const text = isDrained ? `${id} takes no new turns, within seconds; ${String(worker.turns.length)} go on.` : `${id} takes turns again.`;
  answer({ json: { ...viewWorker(worker), isDrained }, text });
}

interface SeriesOptions {
  readonly range: SeriesRange;
}

const ms = (value: number | null): string => (value === null ? '' : `${String(value)} ms`);

async function showSeries({ deployment, answer }: CommandContext, { range }: SeriesOptions): Promise<void> {
  const [redis, { LoadSeries }] = [await deployment.redis(), await import('@concierge/turn')];
  const points = await new LoadSeries(redis).read(range);
  const head = ['AT', 'WAITING', 'OLDEST', 'RUNNING', 'SLOTS', 'ENDED', 'FAILED', 'WAIT P50', 'WAIT P95', 'RUN P50', 'RUN P95'];
  const rows = points.map((point) => [
    point.at,
    String(point.waiting),
    `${point.oldestSeconds.toFixed(1)} s`,
    ...[point.running, point.slots, point.ended, point.failed].map(String),
    ...[point.waitP50Ms, point.waitP95Ms, point.runP50Ms, point.runP95Ms].map(ms),
  ]);
  answer({ json: points, text: points.length === 0 ? 'Nothing was sampled yet: the cron service does it.' : table(head, rows) });
}

/** `concierge series` */
export function seriesCommand(context: CommandContext): Command {
  return new Command('series')
    .addOption(new Option('--range <range>', 'how far back').choices(SeriesRange.options).default('1h'))
    .action(async (options: SeriesOptions) => await showSeries(context, options));
}

interface LogsOptions {
  readonly level: LogLine['level'];
  readonly service?: string;
  readonly limit: string;
}

async function showLogs({ deployment, answer }: CommandContext, id: string | undefined, given: LogsOptions): Promise<void> {
  const limit = Number(given.limit);
  if (!Number.isSafeInteger(limit) || limit < 1) throw new AppError('invalid_request', `${given.limit} is not a number of lines.`);
  const [redis, { readKeptLog }] = [await deployment.redis(), await import('@concierge/turn')];
  const { lines } = await readKeptLog(redis, { id, level: given.level, service: given.service, limit });
  const rows = lines.map(({ at, level, service, turnId, requestId, message }) => [at, level, service, turnId ?? requestId ?? '', message]);
  const text = lines.length === 0 ? 'No such line is kept.' : table(['AT', 'LEVEL', 'SERVICE', 'OF', 'MESSAGE'], rows);
  answer({ json: lines, text });
}

/** `concierge logs` */
export function logsCommand(context: CommandContext): Command {
  return new Command('logs')
    .argument('[id]', 'of a request, a turn or a tenant')
    .addOption(new Option('--level <level>', 'this one and those above it').choices(logLevels).default('info'))
    .option('--service <service>', 'of this service alone')
    .option('--limit <number>', 'newest lines', '100')
    .action(async (id: string | undefined, options: LogsOptions) => await showLogs(context, id, options));
}

/** `concierge top` */
export function topCommand(context: CommandContext): Command {
  return new Command('top').action(async () => await showTop(context));
}
