import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import {
  AppError,
  toAppName,
  appNames,
  appNamesJoined,
  Channel,
  channelDefinitions,
  isMessagingChannel,
  type ChannelCheck,
  type ChannelView,
} from '@concierge/contract';
import { Command } from 'commander';
import { table, type CommandContext } from '../answer.ts';

interface ConnectOptions {
  readonly set: readonly string[];
  readonly file?: string;
}

/** `telegram` and `channel_c` are the same; `web` needs no connecting. */
function parseChannel(name: string): ChannelView['channel'] {
  const channel = Channel.safeParse(name);
  if (channel.success && isMessagingChannel(channel.data)) return channel.data;
  throw new AppError('invalid_request', `${name} is not a channel that can be connected: ${appNames.join(', ')}.`);
}

async function readSettings(file: string): Promise<Record<string, unknown>> {
  const json = await (file === '-' ? text(process.stdin) : readFile(file, 'utf8')).catch((error: unknown) => {
    throw new AppError('invalid_request', `${file} cannot be read.`, { cause: error });
  });
  try {
    const settings: unknown = JSON.parse(json);
    if (typeof settings === 'object' && settings !== null && !Array.isArray(settings)) return { ...settings };
  } catch {
    // The parser's message could quote a secret.
  }
  throw new AppError('invalid_request', `${file === '-' ? 'Standard input' : file} is not a JSON object.`);
}

function parsePair(pair: string): readonly [string, string] {
  const at = pair.indexOf('=');
  if (at < 1) throw new AppError('invalid_request', 'A setting is given as name=value.');
  return [pair.slice(0, at), pair.slice(at + 1)];
}

async function connect({ deployment, answer }: CommandContext, tenantId: string, given: { name: string } & ConnectOptions): Promise<void> {
  const channel = parseChannel(given.name);
  const scope = await deployment.scope(tenantId);
  const settings = { ...(given.file === undefined ? {} : await readSettings(given.file)), ...Object.fromEntries(given.set.map(parsePair)) };
  if (Object.keys(settings).length === 0) {
    const fields = Object.entries(channelDefinitions[channel].settings.shape);
    const optional = fields.filter(([, schema]) => schema.safeParse(undefined).success).map(([name]) => name);
    const needed = fields.map(([name]) => name).filter((name) => !optional.includes(name));
    const names = `${needed.join(', ')}${optional.length === 0 ? '' : `, and may have ${optional.join(', ')}`}`;
    throw new AppError(
      'invalid_request',
      `${toAppName(channel)} needs ${names}: give them as a JSON object with --file, or one by one with --set.`,
    );
  }
  const { shown } = await (await deployment.connections()).connect(scope, channel, settings);
  await deployment.record(tenantId, 'channel.connect', channel);
  const { checks = [] } = shown;
  const isRegistered = checks.some(({ name, ok }) => name === 'webhook' && ok);
  const lines = [
    `${shown.app} is connected for ${tenantId}; its credentials are sealed and not shown again.`,
    ...checks.map(checkLine),
    ...(isRegistered ? [] : [`Have ${shown.app} bring messages to ${shown.webhookUrl}`]),
  ];
  answer({ json: shown, text: lines.join('\n') });
}

function checkLine({ name, ok, message }: ChannelCheck): string {
  return `${name}: ${ok ? 'ok' : 'NOT OK'}. ${message}`;
}

async function list({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
  const views = await (await deployment.connections()).list(await deployment.scope(tenantId));
  const rows = views.map((view) => [
    view.app,
    view.reason === null ? view.state : `${view.state}: ${view.reason}`,
    view.lastInboundAt ?? 'never',
    view.lastOutboundAt ?? 'never',
    view.webhookUrl,
    view.lastError === null ? '' : `${view.lastError.at} ${view.lastError.message}`,
  ]);
  const none = `Nothing is connected: concierge channel connect ${tenantId} <channel>`;
  const head = ['CHANNEL', 'STATE', 'LAST IN', 'LAST OUT', 'WEBHOOK', 'LAST ERROR'];
  answer({ json: views, text: views.length === 0 ? none : table(head, rows) });
}

async function test({ deployment, answer }: CommandContext, tenantId: string, name: string): Promise<void> {
  const tested = await (await deployment.connections()).test(await deployment.scope(tenantId), parseChannel(name));
  answer({ json: tested, text: tested.checks.map(checkLine).join('\n'), failed: !tested.ok });
}

async function disconnect({ deployment, answer }: CommandContext, tenantId: string, name: string): Promise<void> {
  const channel = parseChannel(name);
  await (await deployment.connections()).disconnect(await deployment.scope(tenantId), channel);
  await deployment.record(tenantId, 'channel.disconnect', channel);
  answer({ json: { channel, disconnected: true }, text: `${toAppName(channel)} is disconnected; its conversations stay.` });
}

/** `concierge channel …` */
export function channelCommand(context: CommandContext): Command {
  const command = new Command('channel');
  command
    .command('connect <tenant> <channel>')
    .description(`connect ${appNamesJoined('or')}, or give it new credentials`)
    .option('--file <path>', 'its settings as a JSON object; - for standard input')
    .option(
      '--set <name=value>',
      'one setting; repeat it. What is written on a command line may be seen by others: prefer --file for secrets',
      (pair: string, before: readonly string[]) => [...before, pair],
      [],
    )
    .action(async (tenantId: string, name: string, options: ConnectOptions) => await connect(context, tenantId, { name, ...options }));
  command
    .command('list <tenant>')
    .description('what is connected, without credentials')
    .action(async (tenantId: string) => await list(context, tenantId));
  command
    .command('test <tenant> <channel>')
    .description('ask the provider whether it works; exit code 1 when something does not')
    .action(async (tenantId: string, name: string) => await test(context, tenantId, name));
  command
    .command('disconnect <tenant> <channel>')
    .description('forget its credentials; conversations stay')
    .action(async (tenantId: string, name: string) => await disconnect(context, tenantId, name));
  return command;
}
