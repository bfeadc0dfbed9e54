import type { Dispatcher, RuntimeAccess, ToolAccess, TurnCapabilities } from '@concierge/agent';
import { replyWindow, channelAdapters } from '@concierge/channel';
import type { TurnRun } from '@concierge/turn';

/** A turn's sandbox, closed with the turn. */
export interface RuntimeCapability extends RuntimeAccess, AsyncDisposable {
  /** Sets what makes the dispatcher that answers the tools commands call; called once, before the first command. */
  answerWith(newDispatcher: () => Dispatcher): void;
}

/** The capabilities that a worker binds for one turn and closes at its end. */
export type OpenedCapabilities = TurnCapabilities & AsyncDisposable & { readonly runtime: RuntimeCapability };

/** What the turn's agent may do: at most this may be handed on. */
export interface TurnRights {
  readonly access: ToolAccess;
  /** Names of the tools that the turn has. */
  readonly tools: readonly string[];
}

/** All that capabilities are made from; bound once in wire.ts. */
export interface CapabilityFactories {
  runtime(run: TurnRun): RuntimeCapability;
  web(run: TurnRun, rights: TurnRights): Pick<TurnCapabilities, 'fetchPage' | 'searchWeb'>;
  subagents(run: TurnRun, rights: TurnRights): Pick<TurnCapabilities, 'listAgents' | 'runSubagents'> & AsyncDisposable;
  requestStaff(run: TurnRun): TurnCapabilities['requestStaff'];
  readUpload(run: TurnRun): TurnCapabilities['readUpload'];
  /** Cancels what the turn has started, in whichever attempt, and is still on its way. */
  cancelSubagents(run: TurnRun): Promise<void>;
}

/** Opens nothing before a tool asks for it. */
export function createCapabilities(capabilityFactories: CapabilityFactories, run: TurnRun, rights: TurnRights): OpenedCapabilities {
  const runtime = capabilityFactories.runtime(run);
  const subagents = capabilityFactories.subagents(run, rights);
  const web = capabilityFactories.web(run, rights);
  return {
    runtime,
    fetchPage: web.fetchPage,
    searchWeb: web.searchWeb,
    listAgents: subagents.listAgents,
    runSubagents: subagents.runSubagents,
    requestStaff: capabilityFactories.requestStaff(run),
    findReplyWindow: (channel, to, lastInboundMs) =>
      replyWindow(channelAdapters[channel].rulesFor({ to }), { lastInboundMs, nowMs: Date.now() }),
    readUpload: capabilityFactories.readUpload(run),
    [Symbol.asyncDispose]: async () => {
      // What can still make requests closes first: a command may start sub-agents through its dispatcher.
      await runtime[Symbol.asyncDispose]();
      await subagents[Symbol.asyncDispose]();
    },
  };
}
