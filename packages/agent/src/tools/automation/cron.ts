import {
  AgentName,
  toAppName,
  appNames,
  limits,
  MissedPolicy,
  OverlapPolicy,
  ScheduleId,
  type Schedule,
  type ScheduleDelivery,
  type SchedulePatch,
} from '@concierge/contract';
import { z } from 'zod';
import { howToConnect } from '../messaging/turn-messaging.ts';
import { defineTool, ToolError } from '../tool.ts';
import type { ToolContext } from '../tool-context.ts';
import { readDelivery, readTiming, describeRun, describeSchedule, summarizeSchedule } from './describe-schedule.ts';

const RUNS_LISTED = 20;

const schema = z.strictObject({
  action: z.enum(['list', 'show', 'create', 'update', 'pause', 'resume', 'remove', 'run', 'runs']).describe('What to do.'),
  id: ScheduleId.optional().describe('Which schedule, from list. For everything but list and create.'),
  name: z.string().min(1).max(limits.scheduleNameMaxCharacters).optional().describe('Short name. Needed for create.'),
  message: z
    .string()
    .min(1)
    .max(limits.messageMaxCharacters)
    .optional()
    .describe('What the agent is told each time, complete in itself: it does not know this conversation. Needed for create.'),
  cron: z
    .string()
    .max(500)
    .optional()
    .describe(
      'Five fields: minute hour day-of-month month day-of-week, as in "0 9 * * MON-FRI". Exactly one of cron, every, at for create.',
    ),
  every: z.string().max(20).optional().describe('A fixed distance, counted from now: "15m", "4h", "1d".'),
  at: z.string().max(40).optional().describe('Once: "2027-01-31T09:00" in the time zone, or with an offset such as "…T09:00+01:00".'),
  timezone: z.string().max(64).optional().describe('IANA zone for cron and at, such as Europe/Berlin. Default: the tenant’s.'),
  agent: AgentName.optional().describe('Which agent runs it. Default admin.'),
  deliver_channel: z
    .enum(['none', ...appNames, 'webhook'])
    .optional()
    .describe('Where the reply is sent. Default none: it stays in its conversation.'),
  deliver_to: z
    .string()
    .min(1)
    .max(2048)
    .optional()
    .describe('Who gets it there; with webhook the URL of a system of the owner’s, as the owner gave it. Needed with deliver_channel.'),
  missed: MissedPolicy.optional().describe(
    'Runs that were missed while the service was down: run_once (default) for all of them, skip, or run_all.',
  ),
  overlap: OverlapPolicy.optional().describe('When the run before is not finished: skip (default) or queue one.'),
  jitter_seconds: z
    .int()
    .min(0)
    .max(limits.scheduleJitterMaxSeconds)
    .optional()
    .describe('Run up to this much later, always by the same amount. Default 0.'),
});
type Asked = z.output<typeof schema>;

export const cron = defineTool({
  name: 'cron',
  domain: 'automation',
  cs: 'never',
  description:
    'Schedules: an agent is given a message at certain times. list, show, create, update (only what is given changes), pause, resume, remove, run (once now, beside its times: it begins within seconds, in a conversation of its own), runs (what became of the last ones and of their replies). Make one only when the owner asks for something at a time or again and again; ask for the time zone when it matters and is unclear. The answer names the next five runs: check them against what was asked, and repeat the first to the owner.',
  schema,
  sideEffect: 'writes',
  run: async (input, context) => {
    switch (input.action) {
      case 'list':
        return list(context);
      case 'create':
        return create(input, context);
      case 'show':
        return show(readId(input), context);
      case 'update':
        return update(input, context);
      case 'pause':
        return setEnabled(readId(input), false, context);
      case 'resume':
        return setEnabled(readId(input), true, context);
      case 'remove':
        return remove(readId(input), context);
      case 'run':
        return runNow(readId(input), context);
      case 'runs':
        return listRuns(readId(input), context);
    }
  },
});

async function list({ schedules }: ToolContext): Promise<string> {
  const { schedules: found, broken } = await schedules.list();
  const zone = await schedules.timezone();
  const damaged = broken.map(({ id, reason }) => `${id} cannot be used, its file is damaged: ${reason}. remove it, and create it anew.`);
  if (found.length === 0 && damaged.length === 0) return 'There are no schedules.';
  return [...found.map((schedule) => summarizeSchedule(schedule, zone)), ...damaged].join('\n');
}

async function create(input: Asked, context: ToolContext): Promise<string> {
  const { schedules, callId } = context;
  const { name, message } = input;
  if (name === undefined || message === undefined) throw new ToolError('create needs name, message and one of cron, every, at.');
  if (input.id !== undefined) throw new ToolError('create takes no id: it makes one. To change a schedule use update.');
  const zone = await schedules.timezone();
  const schedule = readTiming(input, zone);
  if (schedule === undefined) throw new ToolError('create needs exactly one of cron, every, at.');
  const made = await schedules.create({ ...readOptions(input), name, message, schedule, deliver: readDelivery(input) ?? null }, callId);
  return `Created.\n${await describe(made, context)}`;
}

async function show(id: string, context: ToolContext): Promise<string> {
  const found = await context.schedules.find(id);
  if (found === undefined) throw new ToolError(`There is no schedule ${id}. Use list.`);
  return describe(found, context);
}

async function describe(schedule: Schedule, { schedules, messaging }: ToolContext): Promise<string> {
  const facts = { zone: await schedules.timezone(), minDistanceMs: await schedules.minDistanceMs() };
  const words = describeSchedule(schedule, facts);
  const channel = schedule.deliver !== null && 'channel' in schedule.deliver ? schedule.deliver.channel : undefined;
  if (channel === undefined || (await messaging.channels()).some((view) => view.channel === channel && view.state === 'enabled'))
    return words;
  return `${words}\nIts reply cannot be delivered: ${toAppName(channel)} is not connected. ${howToConnect(toAppName(channel))}`;
}

async function update(input: Asked, context: ToolContext): Promise<string> {
  const { schedules } = context;
  const id = readId(input);
  const zone = await schedules.timezone();
  const before = await schedules.find(id);
  const kept = before !== undefined && 'cron' in before.schedule ? before.schedule : undefined;
  // A new zone alone moves the existing times.
  const asked =
    input.timezone !== undefined && input.at === undefined && input.every === undefined ? { cron: kept?.cron, ...input } : input;
  const schedule = readTiming(asked, kept?.timezone ?? zone);
  const deliver: ScheduleDelivery | null | undefined = readDelivery(input);
  const { name, message } = input;
  const patch: SchedulePatch = { ...readOptions(input), name, message, schedule, deliver };
  if (Object.values(patch).every((value) => value === undefined)) throw new ToolError('update needs something to change.');
  await schedules.update(id, patch);
  return `Changed.\n${await show(id, context)}`;
}

async function setEnabled(id: string, enabled: boolean, context: ToolContext): Promise<string> {
  await context.schedules.update(id, { enabled });
  return `${enabled ? 'Resumed.' : 'Paused: it does not run until it is resumed, and what falls into the pause is not made up for.'}\n${await show(id, context)}`;
}

async function remove(id: string, { schedules }: ToolContext): Promise<string> {
  await schedules.remove(id);
  return `Removed ${id}.`;
}

async function runNow(id: string, { schedules, callId }: ToolContext): Promise<string> {
  const run = await schedules.run(id, callId);
  return `Asked for: it begins within seconds, or when the run before it has ended. See it with runs.\n${describeRun(run)}`;
}

async function listRuns(id: string, { schedules }: ToolContext): Promise<string> {
  const runs = await schedules.runs(id, RUNS_LISTED);
  return runs.length === 0 ? 'It has not run yet.' : runs.map((run) => describeRun(run)).join('\n');
}

function readOptions({
  agent,
  missed,
  overlap,
  jitter_seconds: jitterSeconds,
}: Asked): Pick<SchedulePatch, 'agent' | 'missed' | 'overlap' | 'jitterSeconds'> {
  return { agent, missed, overlap, jitterSeconds };
}

function readId({ action, id }: Asked): string {
  if (id === undefined) throw new ToolError(`${action} needs id: the schedule’s, from list.`);
  return id;
}
