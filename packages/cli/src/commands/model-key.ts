import { text } from 'node:stream/consumers';
import { AppError, ModelKeyBody, ModelProviderName } from '@concierge/contract';
import { loadProviders } from '@concierge/model';
import { Command } from 'commander';
import { table, type CommandContext } from '../answer.ts';

/** Where the providers file can be read, the provider is one of it. */
async function parseProvider({ deployment: { config } }: CommandContext, name: string): Promise<string> {
  const provider = ModelProviderName.safeParse(name);
  const known = await loadProviders(config.providersFile, config.environment).catch(() => undefined);
  if (provider.success && (known === undefined || known.listed.has(name))) return name;
  const there = known === undefined ? '' : `; there are: ${[...known.listed.keys()].join(', ')}`;
  throw new AppError('invalid_request', `${name} is no model provider here${there}.`);
}

/** The key comes on standard input: arguments are seen by every user of the machine, and kept by shells. */
async function set(context: CommandContext, tenantId: string, name: string): Promise<void> {
  const { deployment, answer, streams } = context;
  const provider = await parseProvider(context, name);
  const body = ModelKeyBody.safeParse({ apiKey: (await text(streams.input)).trim() });
  if (!body.success)
    throw new AppError(
      'invalid_request',
      'Give the key on standard input: 8 to 4096 visible ASCII characters without quotes, backslashes and spaces.',
    );
  const view = await (await deployment.tenantOperations()).putModelKey({ tenantId, provider }, body.data);
  answer({ json: view, text: `${tenantId} calls models of ${provider} with its own key from the next turn on; it is not shown again.` });
}

async function list({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
  const views = await (await deployment.tenantOperations()).listModelKeys(tenantId);
  const rows = views.map(({ provider, hint, updatedAt, problem }) => [provider, hint === '' ? '' : `…${hint}`, updatedAt, problem ?? '']);
  const none = `${tenantId} has no own key for a model provider.`;
  answer({ json: views, text: views.length === 0 ? none : table(['PROVIDER', 'KEY', 'SET', ''], rows) });
}

async function remove({ deployment, answer }: CommandContext, tenantId: string, provider: string): Promise<void> {
  await (await deployment.tenantOperations()).removeModelKey({ tenantId, provider });
  answer({ json: { tenantId, provider, removed: true }, text: `The key is gone: ${tenantId} uses the operator's for ${provider} again.` });
}

/** `concierge model-key …` */
export function modelKeyCommand(context: CommandContext): Command {
  const command = new Command('model-key');
  command
    .command('set <tenant> <provider>')
    .description('use a key of its own for a model provider, read from standard input')
    .action(async (tenantId: string, provider: string) => await set(context, tenantId, provider));
  command
    .command('list <tenant>')
    .description('its own keys, by provider')
    .action(async (tenantId: string) => await list(context, tenantId));
  command
    .command('remove <tenant> <provider>')
    .description('use the operator’s key again')
    .action(async (tenantId: string, provider: string) => await remove(context, tenantId, provider));
  return command;
}
