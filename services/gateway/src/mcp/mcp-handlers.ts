import { once } from 'node:events';
import type { Response as HttpResponse } from 'express';
import { AppError } from '@concierge/contract';
import { createMcpHandler } from '@modelcontextprotocol/server';
import type { Log } from '@concierge/runtime';
import { streamed, type Handlers } from '../http/call.ts';
import type { Drain } from '../http/drain.ts';
import { goneSignal } from '../http/gone-signal.ts';
import { parseJson } from '../http/parse-json.ts';
import type { AgentTools } from './agent-tools.ts';

export interface McpOptions {
  readonly agentTools: AgentTools;
  readonly drain: Drain;
  readonly log: Log;
}

/**
 * The tenant's agents as an MCP server. The library supports both revisions of the protocol; nothing is kept between
 * requests.
 */
export function mcpHandlers({ agentTools, drain, log }: McpOptions): Pick<Handlers, 'serveMcp'> {
  return {
    serveMcp: async ({ caller, request, response, body }) => {
      const excess = excessOf(body);
      if (excess !== undefined) return { kind: 'answer', status: 400, json: { jsonrpc: '2.0', id: null, error: excess } };
      const signal = AbortSignal.any([goneSignal(response), drain.ended]);
      const handler = createMcpHandler(async () => agentTools.serverFor(caller, signal), {
        onerror: (error) => log.debug({ err: error, tenantId: caller.scope.tenantId }, 'MCP request'),
      });
      const headers = new Headers();
      for (const [name, value] of Object.entries(request.headers)) if (typeof value === 'string') headers.set(name, value);
      // The protocol ignores the address; a Request cannot be made without one.
      const asked = new Request('http://concierge.invalid/mcp', { method: 'POST', headers, body: new Uint8Array(body), signal });
      await send(await handler.fetch(asked), response);
      return streamed;
    },
  };
}

/**
 * Invalid Request (JSON-RPC 2.0, 5.1), for a body that is deeper or wider than the library should read; the library
 * itself refuses what is no JSON.
 */
function excessOf(body: Buffer): { readonly code: number; readonly message: string } | undefined {
  try {
    parseJson(body);
    return undefined;
  } catch (error) {
    return error instanceof AppError && error.cause === undefined ? { code: -32_600, message: error.message } : undefined;
  }
}

async function send(answer: Response, response: HttpResponse): Promise<void> {
  response.status(answer.status);
  for (const [name, value] of answer.headers) response.setHeader(name, value);
  for await (const piece of answer.body ?? []) {
    if (response.destroyed) return;
    if (!response.write(piece)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  response.end();
}
