import { mcpTool, ToolError, type Tool } from '@concierge/agent';
import { McpServerError, type McpServers, type McpTool, type McpToolList } from '@concierge/mcp';
import type { Log } from '@concierge/runtime';
import type { McpServerTools } from '@concierge/tenant';
import type { TurnRun } from '@concierge/turn';

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
