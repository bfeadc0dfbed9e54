import { setTimeout as wait } from 'node:timers/promises';
import {
  AppError,
  toAppName,
  DeliveryState,
  deliveryStates,
  limits,
  parseInput,
  RedriveBody,
  type DeliveryView,
  type Redriven,
  type StuckDeliveries,
} from '@concierge/contract';
import { listDeliveries } from '@concierge/tenant';
import { Command, Option } from 'commander';
import { facts, table, type CommandContext } from '../answer.ts';

const TEXT_SHOWN = 40;

interface ListOptions {
  readonly status?: string;
  readonly limit: string;
  readonly cursor?: string;
}

function row({ id, state, problem, channel, to, kind, acceptedAt, text }: DeliveryView): string[] {
  const line = text.replaceAll(/\s+/gu, ' ');
  const shown = line.length > TEXT_SHOWN ? `${line.slice(0, TEXT_SHOWN).toWellFormed()}…` : line;
  return [id, state, problem?.code ?? '', toAppName(channel), to, kind, acceptedAt, shown];
}

async function list({ deployment, answer }: CommandContext, tenantId: string, options: ListOptions): Promise<void> {
  const limit = Number(options.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > limits.sessionsListMax)
    throw new AppError('invalid_request', `--limit must be 1 to ${String(limits.sessionsListMax)}.`);
  const status = options.status === undefined ? undefined : DeliveryState.parse(options.status);
  const { outbox } = await deployment.scope(tenantId);
  const { items, nextCursor } = await listDeliveries(outbox, { limit, status, cursor: options.cursor });
  const views = items.map((delivery) => delivery.view());
  const rows = table(['MESSAGE', 'STATE', 'WHY', 'APP', 'TO', 'KIND', 'ACCEPTED', 'TEXT'], views.map(row));
  const more = nextCursor === null ? '' : `\nMore: --cursor ${nextCursor}`;
  answer({ json: { deliveries: views, nextCursor }, text: views.length === 0 ? 'No messages.' : `${rows}${more}` });
}

async function show({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
  const { outbox } = await deployment.scope(tenantId);
  const delivery = await outbox.delivery(id);
  if (delivery === undefined) throw new AppError('not_found', `${tenantId} has no message ${id}.`);
  const view = delivery.fullView();
  const { state, problem, channel, to, thread, kind, agent, turnId, acceptedAt, expiresAt, updatedAt, parts = [] } = view;
  const head = {
    message: id,
    state: problem === null ? state : `${state} (${problem.code}: ${problem.message})`,
    to: `${to} on ${toAppName(channel)}${thread === null ? '' : `, thread ${thread}`}`,
    kind: `${kind} of ${agent}`,
    turn: turnId,
    conversation: view.contact_id,
    accepted: acceptedAt,
    'not sent after': expiresAt,
    'last change': updatedAt,
  };
  const rows = parts.map((part, index) => [
    String(index + 1),
    part.state,
    String(part.tries),
    part.retryAt ?? '',
    part.problem?.code ?? '',
    part.providerMessageId ?? '',
  ]);
  const partsTable = rows.length === 0 ? '' : `\n\n${table(['PART', 'STATE', 'TRIES', 'NOT BEFORE', 'WHY', 'ITS ID THERE'], rows)}`;
  answer({ json: view, text: `${facts(head)}${partsTable}` });
}

async function redrive({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
  const { outbox } = await deployment.scope(tenantId);
  const delivery = await outbox.redrive(id, { kind: 'operator' });
  await deployment.record(tenantId, 'delivery.redrive', id);
  answer({ json: delivery.fullView(), text: `${id} is on its way again: a worker sends within seconds what did not arrive.` });
}

async function listStuck({ deployment, answer }: CommandContext, { tenant }: { readonly tenant?: string }): Promise<void> {
  const deadLetters = await deployment.deadLetters();
  const found: StuckDeliveries[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await deadLetters.list({ tenant, limit: limits.sessionsListMax, cursor });
    found.push(...page.items);
    cursor = page.nextCursor;
  }
  const head = ['TENANT', 'CHANNEL', 'WAITING', 'TRIED AGAIN', 'DEAD', 'OLDEST SINCE', 'LAST DEAD', 'WHY'];
  const rows = found.map(({ tenantId, channel, waiting, retrying, dead, isWhole, oldestWaitingAt, lastDead }) => [
    tenantId,
    channel,
    String(waiting),
    String(retrying),
    `${String(dead)}${isWhole ? '' : ' or more'}`,
    oldestWaitingAt ?? '',
    lastDead?.id ?? '',
    lastDead?.problem ?? '',
  ]);
  answer({ json: found, text: found.length === 0 ? 'Everything has arrived.' : table(head, rows) });
}

interface RedriveAllOptions {
  readonly tenant?: string;
  readonly channel?: string;
  readonly yes?: true;
}

/** Dead letters that one step takes up: what a provider refuses is seen before all of them are sent. */
const REDRIVE_STEP = 10;
const REDRIVE_PAUSE_MS = 1000;

async function redriveAll({ deployment, answer }: CommandContext, { tenant, channel, yes }: RedriveAllOptions): Promise<void> {
  const deadLetters = await deployment.deadLetters();
  const asked = parseInput(RedriveBody, { tenant, channel, dryRun: yes !== true, limit: REDRIVE_STEP });
  const tenants = new Map<string, number>();
  const skipped = new Map<string, number>();
  for (let cursor: string | null | undefined; cursor !== null;) {
    const step: Redriven = await deadLetters.redriveSome({ ...asked, cursor });
    for (const { tenantId, deliveries } of step.tenants) tenants.set(tenantId, (tenants.get(tenantId) ?? 0) + deliveries);
    for (const { reason, deliveries } of step.skipped) skipped.set(reason, (skipped.get(reason) ?? 0) + deliveries);
    cursor = step.nextCursor;
    if (cursor !== null && step.redriven.length > 0) await wait(REDRIVE_PAUSE_MS);
  }
  const deliveries = [...tenants.values()].reduce((total, count) => total + count, 0);
  const rows = [
    ...Array.from(tenants, ([tenantId, count]) => [tenantId, String(count), '']),
    ...Array.from(skipped, ([reason, count]) => ['-', String(count), `left out: ${reason}`]),
  ];
  const what = yes === true ? 'are on their way again' : 'would be sent again (--yes does it)';
  const list = rows.length === 0 ? '' : `\n${table(['TENANT', 'DEAD LETTERS', ''], rows)}`;
  answer({
    json: { dryRun: yes !== true, deliveries, tenants: Object.fromEntries(tenants), skipped: Object.fromEntries(skipped) },
    text: `${String(deliveries)} dead letters ${what}.${list}`,
  });
}

/** `concierge delivery …` */
export function deliveryCommand(context: CommandContext): Command {
  const command = new Command('delivery');
  command
    .command('list <tenant>')
    .description('newest first; failed, unknown, expired and withheld ones are not tried again by themselves')
    .addOption(new Option('--status <state>', 'only these').choices(deliveryStates))
    .option('--limit <count>', 'how many at most', '25')
    .option('--cursor <cursor>', 'go on where the page before has ended')
    .action(async (tenantId: string, options: ListOptions) => await list(context, tenantId, options));
  command
    .command('stuck')
    .description('messages and webhook events of all tenants that wait, are tried again, or are dead')
    .option('--tenant <tenant>', 'of this tenant alone')
    .action(async (options: { readonly tenant?: string }) => await listStuck(context, options));
  command
    .command('redrive-all')
    .description('says how many dead letters would be sent again, and whose; does it with --yes, until Ctrl-C')
    .option('--tenant <tenant>', 'of this tenant alone')
    .option('--channel <channel>', 'of this channel alone, or `events`')
    .option('--yes', 'send them')
    .action(async (options: RedriveAllOptions) => await redriveAll(context, options));
  const one: readonly [string, string, typeof show][] = [
    ['show', 'one message and its parts', show],
    ['redrive', 'send again what did not arrive, parts with an unknown outcome included', redrive],
  ];
  for (const [name, description, act] of one) {
    command
      .command(`${name} <tenant> <id>`)
      .description(description)
      .action(async (tenantId: string, id: string) => await act(context, tenantId, id));
  }
  return command;
}
