import { Command } from 'commander';
import type { CommandContext } from './command-context.ts';

interface Loadable {
  readonly description: string;
  /** Only the command that is asked for is loaded: all of them together are half a second of a processor. */
  readonly load: () => Promise<(context: CommandContext) => Command>;
}

const commands: Readonly<Record<string, Loadable>> = {
  tenant: { description: 'tenants of this deployment', load: async () => (await import('./commands/tenant.ts')).tenantCommand },
  key: { description: 'API keys of a tenant', load: async () => (await import('./commands/key.ts')).keyCommand },
  skill: { description: 'skills of a tenant', load: async () => (await import('./commands/skill.ts')).skillCommand },
  channel: { description: 'channels of a tenant', load: async () => (await import('./commands/channel.ts')).channelCommand },
  contact: { description: 'notes about contacts of a tenant', load: async () => (await import('./commands/contact.ts')).contactCommand },
  widget: { description: 'the web widget of a tenant', load: async () => (await import('./commands/widget.ts')).widgetCommand },
  cron: { description: 'schedules of a tenant', load: async () => (await import('./commands/cron.ts')).cronCommand },
  delivery: {
    description: 'messages to channels, and what became of them',
    load: async () => (await import('./commands/delivery.ts')).deliveryCommand,
  },
  'event-endpoint': {
    description: 'endpoints that a tenant’s webhook events are sent to',
    load: async () => (await import('./commands/event-endpoint.ts')).eventEndpointCommand,
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
  doctor: { description: 'what works here and what does not', load: async () => (await import('./commands/doctor.ts')).doctorCommand },
};

function withJson(command: Command): Command {
  if (command.commands.length === 0) command.option('--json', 'print JSON');
  for (const sub of command.commands) withJson(sub);
  return command;
}

/**
 * The whole command line, of which those commands are loaded that `args` name; nothing runs and nothing is opened
 * before it is parsed.
 */
export async function createProgram(context: CommandContext, args: readonly string[]): Promise<Command> {
  const program = new Command('concierge')
    .description("Concierge, the operators' command line")
    .showHelpAfterError('(--help shows what there is)');
  for (const [name, { description, load }] of Object.entries(commands)) {
    const command = args.includes(name) ? (await load())(context) : new Command(name);
    program.addCommand(command.description(description));
  }
  return withJson(program);
}
