import { AppError, SubscribedType } from '@concierge/contract';
import { EventSender, eventFetchPolicy, testMessage } from '@concierge/turn';
import { Outbound, OutboundError } from '@concierge/web';
import { Command } from 'commander';
import { facts, table } from '../answer.ts';
import type { CommandContext } from '../command-context.ts';

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
  const note = 'the secret is shown this once';
  answer({ json: made, text: facts({ id: made.id, url: made.url, secret: made.secret, note }) });
}

async function list({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
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
  answer({ json: { id, removed: true }, text: `${id} is removed.` });
}

async function rotate({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
  const made = await (await deployment.scope(tenantId)).events.endpoints.rotateSecret(id);
  const note = 'the new secret is shown this once; the old one signs along for a day';
  answer({ json: made, text: facts({ id: made.id, secret: made.secret, note }) });
}

async function test({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
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
    .action(async (tenantId: string) => await list(context, tenantId));
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
