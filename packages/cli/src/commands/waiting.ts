import { setTimeout as wait } from 'node:timers/promises';
import type { Overview, WaitingEntry, WorkerView } from '@concierge/contract';
import { Command } from 'commander';
import type { WaitingLook } from '@concierge/turn';
import { facts, table, type CommandContext } from '../answer.ts';

const REDRAW_EVERY_MS = 2000;
/** Rows of `top`: what waits longest. */
const TOP_ROWS = 10;
/** Cursor home, then clear what is below: nothing flickers. */
const HOME = '\u001B[H\u001B[J';

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
  const { waiting, isWhole } = await look(context, tenant);
  const shown = waiting.slice(0, Math.max(1, Number(limit) || 1));
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
  for (let shown = first; !stopped.signal.aborted; shown = await look(context)) {
    terminal.write(`${HOME}${screen(shown)}\n`);
    await wait(REDRAW_EVERY_MS, undefined, { signal: stopped.signal }).catch(() => undefined);
  }
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
  return command;
}

/** `concierge top` */
export function topCommand(context: CommandContext): Command {
  return new Command('top').action(async () => await showTop(context));
}
