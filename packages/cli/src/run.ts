import type { Readable, Writable } from 'node:stream';
import { AppError } from '@concierge/contract';
import { readVersion } from '@concierge/runtime';
import { Command, CommanderError } from 'commander';
import { printAnswer, type Answer, type CommandContext, failureLine, describeFailure } from './answer.ts';
import type { Config } from './config.ts';
import { Deployment } from './deployment.ts';

interface Loadable {
  readonly description: string;
  /** Only the command that is asked for is loaded: all of them together are half a second of a processor. */
  readonly load: () => Promise<(context: CommandContext) => Command>;
}

const commands: Readonly<Record<string, Loadable>> = {
  tenant: { description: 'tenants of this deployment', load: async () => (await import('./commands/tenant.ts')).tenantCommand },
  key: { description: 'API keys of a tenant', load: async () => (await import('./commands/key.ts')).keyCommand },
  'model-key': {
    description: 'a tenant’s own keys for model providers',
    load: async () => (await import('./commands/model-key.ts')).modelKeyCommand,
  },
  skill: { description: 'skills of a tenant', load: async () => (await import('./commands/skill.ts')).skillCommand },
  channel: { description: 'channels of a tenant', load: async () => (await import('./commands/channel.ts')).channelCommand },
  retention: {
    description: 'how long a tenant keeps what it has, and what would go now',
    load: async () => (await import('./commands/retention.ts')).retentionCommand,
  },
  contact: { description: 'notes about contacts of a tenant', load: async () => (await import('./commands/contact.ts')).contactCommand },
  widget: { description: 'the web widget of a tenant', load: async () => (await import('./commands/widget.ts')).widgetCommand },
  cron: { description: 'schedules of a tenant', load: async () => (await import('./commands/cron.ts')).cronCommand },
  delivery: {
    description: 'messages to channels, and what became of them',
    load: async () => (await import('./commands/delivery.ts')).deliveryCommand,
  },
  'event-endpoint': {
    description: 'endpoints that a tenant’s webhook events are sent to',
    load: async () => (await import('./commands/event.ts')).eventEndpointCommand,
  },
  event: {
    description: 'webhook events that were sent, or are to be sent',
    load: async () => (await import('./commands/event.ts')).eventCommand,
  },
  handoff: {
    description: 'conversations that staff has, or is asked to take',
    load: async () => (await import('./commands/handoff.ts')).handoffCommand,
  },
  reindex: {
    description: 'rebuild the index from the files and report what differed',
    load: async () => (await import('./commands/reindex.ts')).reindexCommand,
  },
  turn: { description: 'turns of a tenant', load: async () => (await import('./commands/turn.ts')).turnCommand },
  audit: {
    description: 'what operators did, or what was changed in a tenant',
    load: async () => (await import('./commands/tenant.ts')).auditCommand,
  },
  backup: {
    description: 'copy all tenants into one file, while the services run',
    load: async () => (await import('./commands/backup.ts')).backupCommand,
  },
  restore: {
    description: 'put a backup in place, where there are no tenants',
    load: async () => (await import('./commands/backup.ts')).restoreCommand,
  },
  waiting: { description: 'turns that wait, and why', load: async () => (await import('./commands/waiting.ts')).waitingCommand },
  failures: {
    description: 'failed turns of all tenants by cause, and trying them again',
    load: async () => (await import('./commands/failures.ts')).failuresCommand,
  },
  worker: { description: 'workers of this deployment', load: async () => (await import('./commands/waiting.ts')).workerCommand },
  series: {
    description: 'how it was over time: waiting, running, ended, failed',
    load: async () => (await import('./commands/waiting.ts')).seriesCommand,
  },
  logs: {
    description: 'what the services said: warnings, errors, and all of a turn that has one',
    load: async () => (await import('./commands/waiting.ts')).logsCommand,
  },
  top: {
    description: 'what waits and what runs, redrawn on a terminal',
    load: async () => (await import('./commands/waiting.ts')).topCommand,
  },
  usage: { description: 'tokens, model calls and cost', load: async () => (await import('./commands/usage.ts')).usageCommand },
  doctor: { description: 'what works here and what does not', load: async () => (await import('./commands/doctor.ts')).doctorCommand },
};

function withJson(command: Command): Command {
  if (command.commands.length === 0) command.option('--json', 'print JSON');
  for (const sub of command.commands) withJson(sub);
  return command;
}

const VERSION_FLAGS = ['-V', '--version'];

function versionLine(): string {
  const { version, build } = readVersion();
  return `concierge ${version} (${build})`;
}

/**
 * The whole command line, of which those commands are loaded that `args` name; nothing runs and nothing is opened
 * before it is parsed.
 */
export async function createProgram(context: CommandContext, args: readonly string[]): Promise<Command> {
  const program = new Command('concierge')
    .description("Concierge, the operators' command line")
    .version(versionLine(), VERSION_FLAGS.join(', '), 'print the version')
    .showHelpAfterError('(--help shows what there is)');
  for (const [name, { description, load }] of Object.entries(commands)) {
    const command = args.includes(name) ? (await load())(context) : new Command(name);
    program.addCommand(command.description(description));
  }
  return withJson(program);
}

export interface RunOptions {
  /** @throws ConfigError */
  readonly readConfig: () => Config;
  readonly input: Readable;
  readonly out: Writable;
  readonly err: Writable;
}

/** Help and version are no failures; a wrong command line is one. */
function rethrowUsage(error: unknown): void {
  if (!(error instanceof CommanderError)) throw error;
  if (error.exitCode !== 0) throw new AppError('invalid_request', error.message.replace(/^error: /u, ''), { cause: error });
}

/** Every command, the nested ones too: commander hands its settings down only to commands that it makes itself. */
function configure(command: Command, { out, json }: { readonly out: Writable; readonly json: boolean }): void {
  // Its own message is thrown as well, and printed once, by us.
  command
    .exitOverride()
    .configureOutput({ writeOut: (text) => void out.write(text), writeErr: () => undefined, getOutHasColors: () => !json });
  for (const sub of command.commands) configure(sub, { out, json });
}

/** One command from its arguments to its exit code: 0 done, 1 not done or found wanting. Never rejects. */
export async function run(args: readonly string[], { readConfig, input, out, err }: RunOptions): Promise<0 | 1> {
  const json = args.includes('--json');
  // Asked when something is wrong: it needs no configuration.
  if (VERSION_FLAGS.includes(args[0] ?? '')) {
    out.write(json ? `${JSON.stringify(readVersion())}\n` : `${versionLine()}\n`);
    return 0;
  }
  let deployment: Deployment | undefined;
  try {
    deployment = new Deployment(readConfig());
    const answers: Answer[] = [];
    const program = await createProgram(
      { deployment, answer: (answer) => answers.push(answer), streams: { input, out }, ...(!json && { terminal: out }) },
      args,
    );
    configure(program, { out, json });
    await program.parseAsync(args, { from: 'user' }).catch(rethrowUsage);
    for (const answer of answers) printAnswer(answer, { json, out: answer.isAside === true ? err : out });
    return answers.some(({ failed }) => failed === true) ? 1 : 0;
  } catch (error) {
    err.write(json ? `${JSON.stringify(describeFailure(error))}\n` : `concierge: ${failureLine(error)}\n`);
    return 1;
  } finally {
    await deployment?.close();
  }
}
