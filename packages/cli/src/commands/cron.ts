import {
  AppError,
  Channel,
  limits,
  MissedPolicy,
  OverlapPolicy,
  ScheduleDelivery,
  type Schedule,
  type ScheduleTiming,
} from '@concierge/contract';
import type { ScheduleRequest } from '@concierge/tenant';
import { Command, Option } from 'commander';
import { table, type CommandContext } from '../answer.ts';

interface AddOptions {
  readonly name: string;
  readonly message: string;
  readonly cron?: string;
  readonly every?: string;
  readonly at?: string;
  readonly timezone?: string;
  readonly agent?: string;
  readonly deliver?: string;
  readonly missed: string;
  readonly overlap: string;
}

function parseTiming({ cron, every, at, timezone }: AddOptions, defaultZone: string): ScheduleTiming {
  if ([cron, every, at].filter((value) => value !== undefined).length !== 1)
    throw new AppError('invalid_request', 'Give exactly one of --cron, --every and --at.');
  if (timezone !== undefined && cron === undefined) throw new AppError('invalid_request', '--timezone goes with --cron.');
  if (cron !== undefined) return { cron, timezone: timezone ?? defaultZone };
  return every === undefined ? { at: at ?? '' } : { every };
}

/** `telegram:4242`, or the URL of a webhook. */
function parseDelivery(text: string): ScheduleDelivery {
  const webhook = ScheduleDelivery.safeParse({ webhook: text });
  if (webhook.success) return webhook.data;
  const at = text.indexOf(':');
  const channel = Channel.safeParse(text.slice(0, at));
  const delivery = ScheduleDelivery.safeParse({ channel: channel.success ? channel.data : undefined, to: text.slice(at + 1) });
  if (!delivery.success)
    throw new AppError('invalid_request', `${text} is nowhere to deliver to: give channel:recipient, such as telegram:4242, or a URL.`);
  return delivery.data;
}

function timingText(timing: ScheduleTiming): string {
  if ('cron' in timing) return `${timing.cron} (${timing.timezone})`;
  return 'every' in timing ? `every ${timing.every}` : `at ${timing.at}`;
}

async function list({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
  const { schedules } = await deployment.scope(tenantId);
  const found = await schedules.list();
  const views = found.schedules.map((schedule) => schedules.view(schedule));
  const rows = [
    ...views.map(({ id, name, agent, schedule, enabled, nextRunAt }) => [
      id,
      name,
      agent,
      timingText(schedule),
      enabled ? (nextRunAt ?? 'never') : 'paused',
    ]),
    ...found.broken.map(({ id, reason }) => [id, '', '', '', `cannot be used: ${reason}`]),
  ];
  const text = rows.length === 0 ? 'No schedules.' : table(['ID', 'NAME', 'AGENT', 'WHEN', 'NEXT'], rows);
  // Those that cannot be used have a reason in the place of all else.
  answer({ json: [...views, ...found.broken], text, failed: found.broken.length > 0 });
}

async function add({ deployment, answer }: CommandContext, tenantId: string, options: AddOptions): Promise<void> {
  const scope = await deployment.scope(tenantId);
  const { name, message, agent, deliver } = options;
  const request: ScheduleRequest = {
    name,
    message,
    schedule: parseTiming(options, (await scope.settings()).timezone ?? 'UTC'),
    missed: MissedPolicy.parse(options.missed),
    overlap: OverlapPolicy.parse(options.overlap),
    ...(agent === undefined ? {} : { agent }),
    ...(deliver === undefined ? {} : { deliver: parseDelivery(deliver) }),
  };
  const made = await scope.schedules.create(request, { by: { kind: 'operator' }, authority: 'admin' });
  await deployment.record(tenantId, 'schedule.create', made.id);
  say(answer, scope.schedules.view(made), 'is kept');
}

async function setEnabled(
  { deployment, answer }: CommandContext,
  tenantId: string,
  change: { id: string; enabled: boolean },
): Promise<void> {
  const { schedules } = await deployment.scope(tenantId);
  const changed = await schedules.update(change.id, { enabled: change.enabled });
  await deployment.record(tenantId, 'schedule.update', change.id);
  say(answer, schedules.view(changed), change.enabled ? 'is resumed' : 'is paused');
}

function say(
  answer: CommandContext['answer'],
  view: Pick<Schedule, 'id' | 'name'> & { readonly nextRunAt: string | null },
  what: string,
): void {
  const next = view.nextRunAt === null ? 'it has no next run' : `its next time is ${view.nextRunAt}`;
  answer({ json: view, text: `${view.id} (${view.name}) ${what}; ${next}.` });
}

async function remove({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
  await (await deployment.scope(tenantId)).schedules.remove(id);
  await deployment.record(tenantId, 'schedule.delete', id);
  answer({ json: { id, removed: true }, text: `${id} is removed.` });
}

async function runNow({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
  const { schedules } = await deployment.scope(tenantId);
  const view = schedules.runs.view(await schedules.run(id));
  await deployment.record(tenantId, 'schedule.run', id);
  answer({ json: view, text: `${view.id} waits: the cron service begins it within seconds, or when the run before it has ended.` });
}

async function listRuns({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
  const { schedules } = await deployment.scope(tenantId);
  const views = (await schedules.history(id, limits.sessionsListMax)).map((run) => schedules.runs.view(run));
  const rows = views.map(({ scheduledAt, outcome, turn, delivery, reason }) => [
    scheduledAt,
    outcome,
    turn === null ? '' : `${turn.id} ${turn.status}`,
    delivery?.status ?? '',
    turn?.error ?? delivery?.reason ?? reason ?? '',
  ]);
  const text = rows.length === 0 ? 'No runs.' : table(['SCHEDULED', 'OUTCOME', 'TURN', 'DELIVERY', 'WHY'], rows);
  answer({ json: views, text });
}

/** `concierge cron …` */
export function cronCommand(context: CommandContext): Command {
  const command = new Command('cron');
  command
    .command('list <tenant>')
    .description('all schedules, with their next time')
    .action(async (tenantId: string) => await list(context, tenantId));
  command
    .command('add <tenant>')
    .description('make a schedule')
    .requiredOption('--name <name>', 'what it is called')
    .requiredOption('--message <text>', 'the message that the agent gets each time')
    .option('--cron <expression>', 'minute hour day-of-month month day-of-week')
    .option('--every <duration>', 'a fixed distance, such as 15m')
    .option('--at <time>', 'once, such as 2027-01-31T09:00:00+01:00')
    .option('--timezone <zone>', "of --cron; the tenant's when left out")
    .option('--agent <name>', 'which agent runs it; admin when left out')
    .option('--deliver <channel:recipient|url>', 'where the reply is sent; nowhere when left out')
    .addOption(new Option('--missed <policy>', 'runs missed while nothing ran').choices(MissedPolicy.options).default('run_once'))
    .addOption(new Option('--overlap <policy>', 'while the run before is not finished').choices(OverlapPolicy.options).default('skip'))
    .action(async (tenantId: string, options: AddOptions) => await add(context, tenantId, options));
  command
    .command('run <tenant> <id>')
    .description('run it once, now, beside its times')
    .action(async (tenantId: string, id: string) => await runNow(context, tenantId, id));
  command
    .command('runs <tenant> <id>')
    .description('what became of its runs, the newest first')
    .action(async (tenantId: string, id: string) => await listRuns(context, tenantId, id));
  command
    .command('pause <tenant> <id>')
    .description('keep it, and do not run it')
    .action(async (tenantId: string, id: string) => await setEnabled(context, tenantId, { id, enabled: false }));
  command
    .command('resume <tenant> <id>')
    .description('run it again; what fell into the pause is not made up for')
    .action(async (tenantId: string, id: string) => await setEnabled(context, tenantId, { id, enabled: true }));
  command
    .command('remove <tenant> <id>')
    .description('remove a schedule')
    .action(async (tenantId: string, id: string) => await remove(context, tenantId, id));
  return command;
}
