import { Command } from 'commander';
import { channelCommand } from './commands/channel.ts';
import { cronCommand } from './commands/cron.ts';
import { deliveryCommand } from './commands/delivery.ts';
import { doctorCommand } from './commands/doctor.ts';
import { eventCommand } from './commands/event.ts';
import { eventEndpointCommand } from './commands/event-endpoint.ts';
import { handoffCommand } from './commands/handoff.ts';
import { keyCommand } from './commands/key.ts';
import { reindexCommand } from './commands/reindex.ts';
import { skillCommand } from './commands/skill.ts';
import { tenantCommand } from './commands/tenant.ts';
import { turnCommand } from './commands/turn.ts';
import { widgetCommand } from './commands/widget.ts';
import type { CommandContext } from './command-context.ts';

function withJson(command: Command): Command {
  if (command.commands.length === 0) command.option('--json', 'print JSON');
  for (const sub of command.commands) withJson(sub);
  return command;
}

/** The whole command line; nothing runs and nothing is opened before it is parsed. */
export function createProgram(context: CommandContext): Command {
  const program = new Command('concierge')
    .description("Concierge, the operators' command line")
    .showHelpAfterError('(--help shows what there is)');
  const commands = [
    tenantCommand,
    keyCommand,
    skillCommand,
    channelCommand,
    widgetCommand,
    cronCommand,
    deliveryCommand,
    eventEndpointCommand,
    eventCommand,
    handoffCommand,
    reindexCommand,
    turnCommand,
    doctorCommand,
  ];
  for (const create of commands) program.addCommand(create(context));
  return withJson(program);
}
