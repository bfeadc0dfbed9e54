import { AppError, EventEndpointId, EventStatus, limits } from '@concierge/contract';
import { Command, Option } from 'commander';
import { table } from '../answer.ts';
import type { CommandContext } from '../command-context.ts';

interface ListOptions {
  readonly endpoint?: string;
  readonly status?: string;
}

async function list({ deployment, answer }: CommandContext, tenantId: string, options: ListOptions): Promise<void> {
  const { events } = await deployment.scope(tenantId);
  const status = options.status === undefined ? undefined : EventStatus.parse(options.status);
  const { items } = await events.list({ endpoint: options.endpoint, status, limit: limits.sessionsListMax });
  const rows = items.map(({ id, timestamp, type, endpointId, status: state, tries, log, reason }) => [
    id,
    timestamp,
    type,
    endpointId,
    state,
    String(tries),
    reason ?? log.at(-1)?.error ?? '',
  ]);
  const text = rows.length === 0 ? 'No events.' : table(['ID', 'AT', 'TYPE', 'ENDPOINT', 'STATUS', 'TRIES', 'WHY'], rows);
  answer({ json: items, text });
}

/** The worker finds what waits within seconds: nothing needs to run while this does. */
async function redrive(
  { deployment, answer }: CommandContext,
  tenantId: string,
  { id, since }: { readonly id: string; readonly since?: string },
): Promise<void> {
  const { events } = await deployment.scope(tenantId);
  if (!EventEndpointId.safeParse(id).success) {
    if (since !== undefined) throw new AppError('invalid_request', '--since goes with the id of an endpoint.');
    await events.redrive(id);
    answer({ json: { redriven: 1, more: false }, text: `${id} waits to be sent anew.` });
    return;
  }
  const sinceMs = since === undefined ? 0 : Date.parse(since);
  if (Number.isNaN(sinceMs)) throw new AppError('invalid_request', `${since ?? ''} is not a time such as 2027-01-31T12:00:00Z.`);
  const { events: revived, more } = await events.redriveAll(id, sinceMs);
  const rest = more ? ' There are more: call it again.' : '';
  answer({ json: { redriven: revived.length, more }, text: `${String(revived.length)} events wait to be sent anew.${rest}` });
}

/** `concierge event …` */
export function eventCommand(context: CommandContext): Command {
  const command = new Command('event');
  command
    .command('list <tenant>')
    .description('the newest events')
    .option('--endpoint <id>', 'of one endpoint')
    .addOption(new Option('--status <status>', 'in one state').choices(EventStatus.options))
    .action(async (tenantId: string, options: ListOptions) => await list(context, tenantId, options));
  command
    .command('redrive <tenant> <id>')
    .description('send a dead letter again, or all of an endpoint')
    .option('--since <time>', 'of an endpoint: only what happened since')
    .action(async (tenantId: string, id: string, options: { since?: string }) => await redrive(context, tenantId, { id, ...options }));
  return command;
}
