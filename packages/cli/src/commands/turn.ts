import { AppError, AuditReason, CancelTurnsBody, parseInput, TurnStatus, writeTrace, type OperatedTurn } from '@concierge/contract';
import { Command, Option } from 'commander';
import { table, type CommandContext } from '../answer.ts';

const LIST_MAX = 500;

interface ListOptions {
  readonly status?: string;
  readonly code?: string;
  readonly id?: string;
  readonly limit: string;
}

function seconds(from: string | null, to: string | null): string {
  return from === null || to === null ? '' : `${((Date.parse(to) - Date.parse(from)) / 1000).toFixed(1)} s`;
}

function row(turn: OperatedTurn): string[] {
  const outcome = turn.error === null ? (turn.finishReason ?? '') : turn.error.code;
  return [
    turn.id,
    turn.status,
    outcome,
    turn.agent,
    turn.channel,
    turn.acceptedAt,
    seconds(turn.acceptedAt, turn.endedAt),
    String(turn.attempts),
  ];
}

const HEAD = ['TURN', 'STATE', 'OUTCOME', 'AGENT', 'CHANNEL', 'ACCEPTED', 'TOOK', 'STARTS'];

/** Of one tenant, or of all: tenant by tenant, until there are as many as were asked for. */
async function list({ deployment, answer }: CommandContext, tenant: string | undefined, options: ListOptions): Promise<void> {
  const limit = Number(options.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > LIST_MAX)
    throw new AppError('invalid_request', `--limit must be 1 to ${String(LIST_MAX)}.`);
  const status = options.status === undefined ? undefined : TurnStatus.parse(options.status);
  const { code, id } = options;
  const operatedTurns = await deployment.operatedTurns();
  const items: OperatedTurn[] = [];
  let cursor: string | undefined;
  do {
    const page = await operatedTurns.list({ tenant, status, code, id, limit: limit - items.length, cursor });
    items.push(...page.items);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined && items.length < limit);
  if (tenant === undefined) {
    const rows = items.map((turn) => [turn.tenantId, ...row(turn)]);
    answer({ json: items, text: items.length === 0 ? 'There is no such turn.' : table(['TENANT', ...HEAD], rows) });
    return;
  }
  answer({ json: items.map(({ tenantId: _tenantId, ...turn }) => turn), text: table(HEAD, items.map(row)) });
}

/** The life of a turn: its facts, and one line for each thing that happened. */
async function show({ deployment, answer }: CommandContext, tenantId: string, turnId: string): Promise<void> {
  const trace = await (await deployment.operatedTurns()).trace({ tenantId, turnId });
  answer({ json: trace, text: writeTrace(trace) });
}

async function retry({ deployment, answer }: CommandContext, tenantId: string, turnId: string): Promise<void> {
  const turn = await (await deployment.failedTurns()).retryOne({ tenantId, turnId });
  answer({
    json: { turnId: turn.id, contact_id: turn.contact_id, retryOf: turnId },
    text: `Accepted again as ${turn.id}.`,
  });
}

interface CancelOptions {
  readonly tenantId: string;
  readonly turnId: string;
  readonly reason?: string;
}

async function cancel({ deployment, answer }: CommandContext, { tenantId, turnId, ...options }: CancelOptions): Promise<void> {
  const reason = parseInput(AuditReason.optional(), options.reason, '--reason');
  const turn = await (await deployment.failedTurns()).cancel({ tenantId, turnId, reason });
  const live = turn.status === 'waiting' || turn.status === 'running';
  answer({
    json: { turnId, status: turn.status, cancelling: live },
    text: live ? `${turnId} is asked to stop.` : `${turnId} has ended already (${turn.status}).`,
  });
}

interface CancelAllOptions {
  readonly yes?: true;
  readonly reason?: string;
}

async function cancelAll({ deployment, answer }: CommandContext, tenant: string, { yes, reason }: CancelAllOptions): Promise<void> {
  const asked = parseInput(CancelTurnsBody, { tenant, dryRun: yes !== true, reason });
  const cancelled = await (await deployment.failedTurns()).cancelAll(asked);
  const what = yes === true ? 'are asked to stop' : 'would be cancelled (--yes --reason <text> does it)';
  answer({
    json: cancelled,
    text: `${String(cancelled.waiting)} waiting and ${String(cancelled.running)} running turns of ${tenant} ${what}.`,
  });
}

const reasonHelp = 'why; it goes on record, and the tenant reads it';

/** `concierge turn …` */
export function turnCommand(context: CommandContext): Command {
  const command = new Command('turn');
  command
    .command('list [tenant]')
    .description('of one tenant, or of all: tenant by tenant, newest first')
    .addOption(new Option('--status <state>', 'only these').choices(TurnStatus.options))
    .option('--code <code>', 'only those that failed with it')
    .option('--id <id>', 'only this turn, or the turns of this conversation')
    .option('--limit <count>', 'how many at most', '25')
    .action(async (tenant: string | undefined, options: ListOptions) => await list(context, tenant, options));
  const one: readonly [string, string, typeof show][] = [
    ['show', 'the life of one turn: waits, prompt, steps, what was sent', show],
    ['retry', 'ask what a failed or cancelled turn asked once more', retry],
  ];
  for (const [name, description, act] of one) {
    command
      .command(`${name} <tenant> <id>`)
      .description(description)
      .action(async (tenantId: string, turnId: string) => await act(context, tenantId, turnId));
  }
  command
    .command('cancel <tenant> <id>')
    .description('stop a waiting or running turn')
    .option('--reason <text>', reasonHelp)
    .action(async (tenantId: string, turnId: string, options: { readonly reason?: string }) =>
      cancel(context, { ...options, tenantId, turnId }),
    );
  command
    .command('cancel-all <tenant>')
    .description('says how many turns of a tenant wait and run; stops them with --yes')
    .option('--yes', 'cancel them')
    .option('--reason <text>', reasonHelp)
    .action(async (tenant: string, options: CancelAllOptions) => await cancelAll(context, tenant, options));
  return command;
}
