import { once } from 'node:events';
import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import { AppError, ChatReply, ContactId, limits, MessageText, type AgentDefinition } from '@concierge/contract';
import type { CallToolResult, McpServer, ServerContext } from '@modelcontextprotocol/server';
import type { Log } from '@concierge/runtime';
import { z } from 'zod';
import { streamed, type Handlers, type Caller } from '../http/call.ts';
import type { Drain } from '../http/http-server.ts';
import { goneSignal, sourceOfCaller } from '../http/request-context.ts';
import { parseJson } from '../http/request-body.ts';
import type { Replies } from '../sse/replies.ts';
import { callableAgents } from '../chat/key-permissions.ts';
import type { MessageAcceptance } from '../chat/message-acceptance.ts';

export interface McpOptions {
  readonly agentTools: AgentTools;
  readonly drain: Drain;
  readonly log: Log;
}

/** On demand: most deployments serve no MCP client, and it is 0.8 MB of source. */
async function loadLibrary() {
  return import('@modelcontextprotocol/server');
}

/**
 * The tenant's agents as an MCP server. The library supports both revisions of the protocol; nothing is kept between
 * requests.
 */
export function mcpHandlers({ agentTools, drain, log }: McpOptions): Pick<Handlers, 'serveMcp'> {
  return {
    serveMcp: async ({ caller, request, response, body }) => {
      const excess = findExcess(body);
      if (excess !== undefined) return { kind: 'answer', status: 400, json: { jsonrpc: '2.0', id: null, error: excess } };
      const signal = AbortSignal.any([goneSignal(response), drain.ended]);
      const { createMcpHandler } = await loadLibrary();
      const handler = createMcpHandler(async () => agentTools.serverFor(caller, { ended: signal, request }), {
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
function findExcess(body: Buffer): { readonly code: number; readonly message: string } | undefined {
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

interface AgentToolsOptions {
  readonly acceptance: MessageAcceptance;
  readonly replies: Pick<Replies, 'fold'>;
}

/** Sent while a turn runs, where the client asked for it: clients give up on a silent call after a minute. */
const PROGRESS_EVERY_MS = 10_000;

const Outcome = ChatReply.pick({ contact_id: true, turnId: true, reply: true, finishReason: true });

const ownerInput = z.strictObject({
  message: MessageText.describe('What to say to the agent.'),
  contact_id: ContactId.optional().describe('Continues the conversation of an earlier answer; without it a new one begins.'),
});
const contactInput = ownerInput.extend({
  sender: z
    .string()
    .min(1)
    .max(limits.senderMaxCharacters)
    .optional()
    .describe('Stable identifier of the person who asks: keeps conversation and memory of each person apart.'),
});

/** The agents that a key may talk to, each as one tool `ask_<agent>`. A call is a turn like any other. */
export class AgentTools {
  readonly #options: AgentToolsOptions;

  constructor(options: AgentToolsOptions) {
    this.#options = options;
  }

  /**
   * For one request: the protocol is stateless, and the caller decides which tools there are. `ended`: the client no
   * longer waits for answers.
   */
  async serverFor(caller: Caller, { ended, request }: Pick<Whom, 'ended' | 'request'>): Promise<McpServer> {
    const { McpServer: Server } = await loadLibrary();
    const server = new Server({ name: 'concierge', version: '0.1.0' }, { instructions: INSTRUCTIONS });
    for (const agent of await callableAgents(caller)) {
      const config = { description: agent.description, outputSchema: Outcome };
      const ask = async (input: z.output<typeof contactInput>, context: ServerContext): Promise<CallToolResult> =>
        this.#ask({ caller, agent, ended, request }, input, context);
      if (agent.access === 'admin') server.registerTool(toToolName(agent), { ...config, inputSchema: ownerInput }, ask);
      else server.registerTool(toToolName(agent), { ...config, inputSchema: contactInput }, ask);
    }
    return server;
  }

  async #ask(whom: Whom, input: z.output<typeof contactInput>, context: ServerContext): Promise<CallToolResult> {
    const progress = new Progress(context);
    try {
      const outcome = await this.#turn(whom, input, context.mcpReq.signal);
      return { content: [{ type: 'text', text: outcome.reply }], structuredContent: { ...outcome } };
    } catch (error) {
      if (!(error instanceof AppError) || error.status >= 500) throw error;
      return { content: [{ type: 'text', text: `${error.message} (${error.code})` }], isError: true };
    } finally {
      progress.stop();
    }
  }

  async #turn(
    { caller, agent, ended, request }: Whom,
    input: z.output<typeof contactInput>,
    gone: AbortSignal,
  ): Promise<z.output<typeof Outcome>> {
    const { acceptance, replies } = this.#options;
    const { turnId } = await acceptance.accept(sourceOfCaller(caller, undefined, request), {
      agent: agent.name,
      authority: agent.access,
      channel: 'web',
      sender: input.sender ?? null,
      contactId: input.contact_id ?? null,
      text: input.message,
      attachments: [],
      busy: 'queue',
    });
    const { contact_id, reply, finishReason } = await replies.fold({ scope: caller.scope, turnId }, AbortSignal.any([gone, ended]));
    return { contact_id, turnId, reply, finishReason };
  }
}

interface Whom {
  readonly caller: Caller;
  readonly agent: AgentDefinition;
  readonly ended: AbortSignal;
  readonly request: Pick<HttpRequest, 'headers'>;
}

const INSTRUCTIONS =
  'Each tool talks to one agent of this workspace. It answers in its own time, which may be minutes; keep its contact_id to go on with a conversation.';

function toToolName({ name }: AgentDefinition): string {
  return `ask_${name}`;
}

/** Reports progress of a running call to a client that gave a token for it. */
class Progress {
  readonly #timer: NodeJS.Timeout | undefined;

  constructor({ mcpReq }: ServerContext) {
    const token = mcpReq._meta?.progressToken;
    if (token === undefined) return;
    let progress = 0;
    this.#timer = setInterval(() => {
      progress += 1;
      const params = { progressToken: token, progress, message: 'The agent is still working.' };
      mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined);
    }, PROGRESS_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
