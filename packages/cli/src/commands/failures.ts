import { setTimeout as wait } from 'node:timers/promises';
import { AppError, Duration, durationMs, MINUTE_MS, sumFailures, type FailureGroup, type TurnsRetried } from '@concierge/contract';
import { Command } from 'commander';
import { table, type CommandContext } from '../answer.ts';

interface FilterOptions {
  readonly since: string;
  readonly tenant?: string;
  readonly code?: string;
}

/** A duration back from now, or a time. */
function readSince(since: string): string {
  const isDuration = Duration.safeParse(since).success;
  const ms = isDuration ? Date.now() - durationMs(since) : Date.parse(since);
  if (!Number.isNaN(ms)) return new Date(ms).toISOString();
  throw new AppError('invalid_request', `--since ${since} is neither a duration such as 24h nor a time such as 2027-01-31T12:00:00Z.`);
}

async function listFailures({ deployment, answer }: CommandContext, { since, tenant, code }: FilterOptions): Promise<void> {
  const failedTurns = await deployment.failedTurns();
  const filter = { since: readSince(since), tenant, code };
  let groups: FailureGroup[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await failedTurns.list(filter, cursor);
    groups = sumFailures([...groups, ...page.groups]);
    cursor = page.nextCursor;
  }
  const rows = groups.map(({ turns, tenants, code: cause, model, firstAt, lastAt, example, message }) => [
    String(turns),
    String(tenants.length),
    cause,
    model ?? '',
    firstAt,
    lastAt,
    `${example.tenantId} ${example.turnId}`,
    message,
  ]);
  const head = ['TURNS', 'TENANTS', 'CODE', 'MODEL', 'FIRST', 'LAST', 'LAST ONE', 'MESSAGE'];
  answer({ json: groups, text: groups.length === 0 ? 'No turn failed.' : table(head, rows) });
}

interface RetryOptions extends FilterOptions {
  readonly id?: string;
  readonly yes?: true;
  readonly perMinute: string;
}

/** Turns that one step accepts. */
const STEP = 5;

async function retryFailures(context: CommandContext, { since, tenant, code, id, yes, perMinute }: RetryOptions): Promise<void> {
  const { deployment, answer, terminal } = context;
  const rate = Number(perMinute);
  if (!(rate >= 1 && rate <= 60_000)) throw new AppError('invalid_request', '--per-minute must be 1 to 60000.');
  const failedTurns = await deployment.failedTurns();
  // What fails from now on is not tried again by this call.
  const filter = { since: readSince(since), until: new Date().toISOString(), tenant, code, id };
  const stopped = new AbortController();
  const stop = (): void => {
    stopped.abort();
  };
  process.once('SIGINT', stop);
  const steps: TurnsRetried[] = [];
  try {
    for (let cursor: string | null = ''; cursor !== null && !stopped.signal.aborted;) {
      const step: TurnsRetried = await failedTurns.retry({
        ...filter,
        dryRun: yes !== true,
        limit: STEP,
        ...(cursor !== '' && { cursor }),
      });
      steps.push(step);
      cursor = step.nextCursor;
      for (const { tenantId, retryOf, turnId } of step.retried) terminal?.write(`${tenantId}: ${retryOf} is accepted again as ${turnId}\n`);
      const pauseMs = (step.retried.length * MINUTE_MS) / rate;
      if (cursor !== null && pauseMs > 0) await wait(pauseMs, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  } finally {
    process.removeListener('SIGINT', stop);
  }
  const json = { dryRun: yes !== true, stopped: stopped.signal.aborted, ...sumSteps(steps) };
  answer({ json, text: describeRetry(json) });
}

interface Sums {
  readonly turns: number;
  readonly tenants: Readonly<Record<string, number>>;
  readonly skipped: Readonly<Record<string, number>>;
}

function sumSteps(steps: readonly TurnsRetried[]): Sums {
  const [tenants, skipped] = [new Map<string, number>(), new Map<string, number>()];
  for (const step of steps) {
    for (const { tenantId, turns } of step.tenants) tenants.set(tenantId, (tenants.get(tenantId) ?? 0) + turns);
    for (const { reason, turns } of step.skipped) skipped.set(reason, (skipped.get(reason) ?? 0) + turns);
  }
  const turns = steps.reduce((sum, step) => sum + step.turns, 0);
  return { turns, tenants: Object.fromEntries(tenants), skipped: Object.fromEntries(skipped) };
}

function describeRetry({
  dryRun,
  stopped,
  turns,
  tenants,
  skipped,
}: Sums & { readonly dryRun: boolean; readonly stopped: boolean }): string {
  const what = dryRun ? 'would be accepted again (--yes does it)' : 'are accepted again';
  const rows = [
    ...Object.entries(tenants).map(([tenantId, count]) => [tenantId, String(count), '']),
    ...Object.entries(skipped).map(([reason, count]) => ['-', String(count), `left out: ${reason}`]),
  ];
  const list = rows.length === 0 ? [] : [table(['TENANT', 'TURNS', ''], rows)];
  const rest = stopped ? ['Stopped: the same command goes on with the others.'] : [];
  return [`${String(turns)} turns ${what}.`, ...list, ...rest].join('\n');
}

function withFilter(command: Command): Command {
  return command
    .option('--since <time>', 'accepted since: a duration back from now, or a time', '24h')
    .option('--tenant <tenant>', 'of this tenant alone')
    .option('--code <code>', 'with this code of error alone');
}

/** `concierge failures …` */
export function failuresCommand(context: CommandContext): Command {
  const command = new Command('failures');
  withFilter(command.command('list', { isDefault: true }))
    .description('by cause: how many, whose, since when, and the last one')
    .action(async (options: FilterOptions) => await listFailures(context, options));
  withFilter(command.command('retry'))
    .description('says how many would be accepted again, and whose; does it with --yes, until Ctrl-C')
    .option('--id <id>', 'this turn, or the turns of this conversation, alone')
    .option('--yes', 'accept them again')
    .option('--per-minute <count>', 'how many a minute', '60')
    .action(async (options: RetryOptions) => await retryFailures(context, options));
  return command;
}
