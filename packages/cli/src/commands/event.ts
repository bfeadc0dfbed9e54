import { AppError, SubscribedType, EventEndpointId, EventStatus, limits } from '@concierge/contract';
import { Command, Option } from 'commander';
import { facts, table, type CommandContext } from '../answer.ts';

interface AddOptions {
  readonly description?: string;
  readonly type: readonly string[];
  readonly includeText?: true;
}

function parseTypes(names: readonly string[]): SubscribedType[] | null {
  if (names.length === 0) return null;
  return names.map((name) => {
    const type = SubscribedType.safeParse(name);
    if (!type.success) throw new AppError('invalid_request', `${name} is no type of event: ${SubscribedType.options.join(', ')}.`);
    return type.data;
  });
}

async function add(
  { deployment, answer }: CommandContext,
  tenantId: string,
  { url, ...options }: AddOptions & { readonly url: string },
): Promise<void> {
  const { endpoints } = (await deployment.scope(tenantId)).events;
  const { description = '', includeText = false } = options;
  const made = await endpoints.create({ url, description, includeText, types: parseTypes(options.type) });
  await deployment.record(tenantId, 'event-endpoint.create', made.id);
  const note = 'the secret is shown this once';
  answer({ json: made, text: facts({ id: made.id, url: made.url, secret: made.secret, note }) });
}

async function listEndpoints({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
  const views = await (await deployment.scope(tenantId)).events.endpoints.list();
  const rows = views.map(({ id, url, types, state, reason, failingSince }) => [
    id,
    url,
    types === null ? 'all' : types.length === 0 ? 'replies of schedules' : types.join(','),
    reason === null ? state : `${state}: ${reason}`,
    failingSince === null ? '' : `failing since ${failingSince}`,
  ]);
  answer({ json: views, text: views.length === 0 ? 'No endpoints.' : table(['ID', 'URL', 'TYPES', 'STATE', ''], rows) });
}

async function remove({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
  await (await deployment.scope(tenantId)).events.endpoints.remove(id);
  await deployment.record(tenantId, 'event-endpoint.delete', id);
  answer({ json: { id, removed: true }, text: `${id} is removed.` });
}

async function rotate({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
  const made = await (await deployment.scope(tenantId)).events.endpoints.rotateSecret(id);
  await deployment.record(tenantId, 'event-endpoint.rotate', id);
  const note = 'the new secret is shown this once; the old one signs along for a day';
  answer({ json: made, text: facts({ id: made.id, secret: made.secret, note }) });
}

async function test({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
  // Only this command sends something; the others need neither.
  const { EventSender, eventFetchPolicy, testMessage } = await import('@concierge/turn');
  const { Outbound, OutboundError } = await import('@concierge/web');
  const endpoint = await (await deployment.scope(tenantId)).events.endpoints.open(id);
  const sender = new EventSender({
    fetch: new Outbound({ allow: deployment.config.outboundAllow }).fetcher(eventFetchPolicy),
    explain: (error) => (error instanceof OutboundError ? error.message : undefined),
  });
  const { error, status, ms } = await sender.send(endpoint, testMessage(tenantId), new AbortController().signal);
  const json = { ok: error === null, status, ms, problem: error };
  answer({ json, text: error ?? `It took endpoint.test with ${String(status)} after ${String(ms)} ms.`, failed: error !== null });
}

/** `concierge event-endpoint …` */
export function eventEndpointCommand(context: CommandContext): Command {
  const command = new Command('event-endpoint');
  command
    .command('add <tenant> <url>')
    .description('have events sent to a URL, signed')
    .option('--description <text>', 'what it is for')
    .option('--type <type>', 'send it this type only; repeatable', (name: string, before: readonly string[]) => [...before, name], [])
    .option('--include-text', 'put the reply into turn.completed')
    .action(async (tenantId: string, url: string, options: AddOptions) => await add(context, tenantId, { ...options, url }));
  command
    .command('list <tenant>')
    .description('endpoints and their states, without secrets')
    .action(async (tenantId: string) => await listEndpoints(context, tenantId));
  command
    .command('test <tenant> <id>')
    .description('send endpoint.test now')
    .action(async (tenantId: string, id: string) => await test(context, tenantId, id));
  command
    .command('rotate <tenant> <id>')
    .description('give it a new secret')
    .action(async (tenantId: string, id: string) => await rotate(context, tenantId, id));
  command
    .command('remove <tenant> <id>')
    .description('send nothing to it any more')
    .action(async (tenantId: string, id: string) => await remove(context, tenantId, id));
  return command;
}

interface EventFilters {
  readonly endpoint?: string;
  readonly status?: string;
}

async function listEvents({ deployment, answer }: CommandContext, tenantId: string, options: EventFilters): Promise<void> {
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
    await deployment.record(tenantId, 'event.redrive', id);
    answer({ json: { redriven: 1, more: false }, text: `${id} waits to be sent anew.` });
    return;
  }
  const sinceMs = since === undefined ? 0 : Date.parse(since);
  if (Number.isNaN(sinceMs)) throw new AppError('invalid_request', `${since ?? ''} is not a time such as 2027-01-31T12:00:00Z.`);
  const { events: revived, more } = await events.redriveAll(id, sinceMs);
  await deployment.record(tenantId, 'event.redrive', id);
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
    .action(async (tenantId: string, options: EventFilters) => await listEvents(context, tenantId, options));
  command
    .command('redrive <tenant> <id>')
    .description('send a dead letter again, or all of an endpoint')
    .option('--since <time>', 'of an endpoint: only what happened since')
    .action(async (tenantId: string, id: string, options: { since?: string }) => await redrive(context, tenantId, { id, ...options }));
  return command;
}
