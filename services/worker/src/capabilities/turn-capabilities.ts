import {
  mcpTool,
  ToolError,
  type Dispatcher,
  type RuntimeAccess,
  type Tool,
  type ToolAccess,
  type TurnCapabilities,
} from '@concierge/agent';
import { replyWindow, channelAdapters } from '@concierge/channel';
import { McpServerError, type McpServers, type McpTool, type McpToolList } from '@concierge/mcp';
import type { Log } from '@concierge/runtime';
import type { McpServerTools } from '@concierge/tenant';
import type { TurnRun } from '@concierge/turn';

/** A turn's sandbox, closed with the turn. */
export type RuntimeCapability = RuntimeAccess & AsyncDisposable;

/** What the turn's agent may do: at most this may be handed on. */
export interface TurnRights {
  readonly access: ToolAccess;
  /** Names of the tools that the turn has. */
  readonly tools: readonly string[];
}

/** All that capabilities are made from; bound once in wire.ts. */
export interface CapabilityFactories {
  /** `newDispatcher`: creates what answers the tools that commands call. */
  runtime(run: TurnRun, newDispatcher: () => Dispatcher): RuntimeCapability;
  web(run: TurnRun, rights: TurnRights): Pick<TurnCapabilities, 'fetchPage' | 'searchWeb'>;
  subagents(run: TurnRun, rights: TurnRights): Pick<TurnCapabilities, 'listAgents' | 'runSubagents'> & AsyncDisposable;
  requestStaff(run: TurnRun): TurnCapabilities['requestStaff'];
  readUpload(run: TurnRun): TurnCapabilities['readUpload'];
  /** Cancels what the turn has started, in whichever attempt, and is still on its way. */
  cancelSubagents(run: TurnRun): Promise<void>;
}

export interface OpenedCapabilitiesOptions {
  readonly factories: CapabilityFactories;
  readonly run: TurnRun;
  readonly rights: TurnRights;
  readonly newDispatcher: () => Dispatcher;
}

/** The capabilities of one turn: each is made when a tool first asks for it, and those that were made close with it. */
export class OpenedCapabilities implements TurnCapabilities, AsyncDisposable {
  readonly #options: OpenedCapabilitiesOptions;
  #runtime: RuntimeCapability | undefined;
  #web: ReturnType<CapabilityFactories['web']> | undefined;
  #subagents: ReturnType<CapabilityFactories['subagents']> | undefined;
  #isClosed = false;

  constructor(options: OpenedCapabilitiesOptions) {
    this.#options = options;
  }

  get runtime(): TurnCapabilities['runtime'] {
    const { factories, run, newDispatcher } = this.#options;
    return (this.#runtime ??= this.#make(() => factories.runtime(run, newDispatcher)));
  }

  get fetchPage(): TurnCapabilities['fetchPage'] {
    return this.#openWeb().fetchPage;
  }

  get searchWeb(): TurnCapabilities['searchWeb'] {
    return this.#openWeb().searchWeb;
  }

  get listAgents(): TurnCapabilities['listAgents'] {
    return this.#openSubagents().listAgents;
  }

  get runSubagents(): TurnCapabilities['runSubagents'] {
    return this.#openSubagents().runSubagents;
  }

  get requestStaff(): TurnCapabilities['requestStaff'] {
    return this.#options.factories.requestStaff(this.#options.run);
  }

  get readUpload(): TurnCapabilities['readUpload'] {
    return this.#options.factories.readUpload(this.#options.run);
  }

  readonly findReplyWindow: TurnCapabilities['findReplyWindow'] = (channel, to, lastInboundMs) =>
    replyWindow(channelAdapters[channel].rulesFor({ to }), { lastInboundMs, nowMs: Date.now() });

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    // What can still make requests closes first: a command may start sub-agents through its dispatcher.
    await this.#runtime?.[Symbol.asyncDispose]();
    await this.#subagents?.[Symbol.asyncDispose]();
  }

  #openWeb(): ReturnType<CapabilityFactories['web']> {
    const { factories, run, rights } = this.#options;
    return (this.#web ??= this.#make(() => factories.web(run, rights)));
  }

  #openSubagents(): ReturnType<CapabilityFactories['subagents']> {
    const { factories, run, rights } = this.#options;
    return (this.#subagents ??= this.#make(() => factories.subagents(run, rights)));
  }

  /** A tool that outlives its turn opens nothing that is not closed. */
  #make<Made>(make: () => Made): Made {
    if (this.#isClosed) throw new ToolError('The turn is over.');
    return make();
  }
}

export interface McpToolsOptions {
  readonly servers: Pick<McpServers, 'tools' | 'call'>;
  readonly log: Log;
}

/**
 * The tools of the MCP servers that a tenant has attached to the agent of a turn. A server that does not work is passed
 * over.
 */
export class McpTools {
  readonly #options: McpToolsOptions;
  /** What was made of the lists that are remembered: a list is one tenant's, of one revision of a server. */
  readonly #tools = new WeakMap<McpToolList, readonly Tool[]>();

  constructor(options: McpToolsOptions) {
    this.#options = options;
  }

  /** The same tools as long as the servers and their lists are. */
  async listTools({ scope, turn, signal }: Pick<TurnRun, 'scope' | 'turn' | 'signal'>): Promise<Tool[]> {
    if (!(await scope.uses('mcp'))) return [];
    const attached = await scope.mcp.attachedTo(turn.agent);
    const lists = await Promise.all(attached.map(async (server) => this.#listServerTools(scope.tenantId, server, signal)));
    return lists.flat();
  }

  async #listServerTools(tenantId: string, server: McpServerTools, signal: AbortSignal): Promise<readonly Tool[]> {
    try {
      const list = await this.#options.servers.tools(tenantId, server, signal);
      const tools = this.#tools.get(list) ?? list.tools.map((tool) => this.#tool(tenantId, server, tool));
      this.#tools.set(list, tools);
      return tools;
    } catch (error) {
      if (!(error instanceof McpServerError)) throw error;
      this.#options.log.warn({ tenantId, server: server.name, reason: error.message }, 'an attached MCP server does not work');
      return [];
    }
  }

  #tool(tenantId: string, server: McpServerTools, tool: McpTool): Tool {
    const { name, description, parameters, isReadOnly, remoteName } = tool;
    return mcpTool({
      name,
      description,
      parameters,
      sideEffect: isReadOnly ? 'none' : 'writes',
      timeoutMs: server.timeoutMs,
      run: async (input, signal) => {
        try {
          return await this.#options.servers.call(tenantId, server, { tool: remoteName, input, signal });
        } catch (error) {
          if (error instanceof McpServerError)
            throw new ToolError(`The MCP server ${server.name} could not be asked: ${error.message}.`, { cause: error });
          throw error;
        }
      },
    });
  }
}
