import { answerDeadline } from '@concierge/runtime/process';
import type * as Library from '@modelcontextprotocol/client';
import type { Client, jsonSchemaValidator } from '@modelcontextprotocol/client';
import { McpServerError, type McpCallResult, type McpServer, type McpToolList, offeredTools, resultText } from './mcp-tools.ts';
import { unlessAborted } from './unless-aborted.ts';

/** The part of `fetch` that the transport uses. */
export type McpFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

export interface McpConnectionOptions {
  readonly fetch: McpFetch;
  /** The public text for an error that `fetch` threw; undefined for errors that are not its own. */
  readonly explain: (error: unknown) => string | undefined;
}

/** A server is passed over that takes longer for its hello, or for that and the list of its tools with all pages. */
const LIST_TIMEOUT_MS = 8000;
/**
 * Timers of the library come before what has arrived while this process stood still: before them, ours end what takes
 * too long.
 */
const LIBRARY_TIMEOUT_MS = 120_000;
const RESULT_MAX_CHARACTERS = 4 * 1024 * 1024;

const NO_ANSWER = 'the server did not answer in time';
const timedOut = new Error(NO_ANSWER);

/** On demand: most tenants attach no server, and it is 0.9 MB of source. */
async function loadLibrary(): Promise<typeof Library> {
  return import('@modelcontextprotocol/client');
}

/**
 * Results are read as text, whatever schema their server declares for them. A schema is the server's, and so are its
 * `pattern`s: compiled and run by us, one of them could stop the process.
 */
const anyValue: jsonSchemaValidator = {
  getValidator<Value>() {
    return (input: unknown) =>
      isWhatever<Value>(input)
        ? { valid: true, data: input, errorMessage: undefined }
        : { valid: false, data: undefined, errorMessage: 'never' };
  },
};

function isWhatever<Value>(_input: unknown): _input is Value {
  return true;
}

/**
 * One client of one server: not connected → connected → not connected again, when the server has forgotten the session
 * or anything broke. Supports revision 2026-07-28, and with older servers 2025-11-25 and what came before it, by
 * `initialize`.
 */
export class McpConnection {
  readonly #server: McpServer;
  readonly #options: McpConnectionOptions;
  #session: McpSession | undefined;

  constructor(server: McpServer, options: McpConnectionOptions) {
    this.#server = server;
    this.#options = options;
  }

  /** @throws McpServerError after a few seconds at most */
  async list(): Promise<McpToolList> {
    // What loading it takes is no time of the server's.
    await loadLibrary();
    const deadline = answerDeadline(LIST_TIMEOUT_MS);
    try {
      return await this.#ask(deadline, async (client) => {
        const options = { timeout: LIBRARY_TIMEOUT_MS };
        const { tools } = client.getServerCapabilities()?.tools === undefined ? { tools: [] } : await client.listTools({}, options);
        return { protocolVersion: client.getNegotiatedProtocolVersion() ?? null, tools: offeredTools(this.#server, tools) };
      });
    } catch (error) {
      if (error !== deadline.reason) throw error;
      if (this.#session !== undefined) this.#leave(this.#session);
      throw new McpServerError(NO_ANSWER, { cause: error });
    }
  }

  /** @throws McpServerError when no result could be had; what the tool itself reports is in the result */
  async call(remoteName: string, input: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<McpCallResult> {
    return this.#ask(signal, async (client) => {
      const timeout = this.#server.timeoutMs;
      const result = await client.callTool({ name: remoteName, arguments: { ...input } }, { signal, timeout, maxTotalTimeout: timeout });
      return { text: resultText(result).slice(0, RESULT_MAX_CHARACTERS), isError: result.isError === true };
    });
  }

  /** What is being asked meanwhile gets its answer first. */
  async close(): Promise<void> {
    await this.#session?.retire();
    this.#session = undefined;
  }

  /** A server that has forgotten our session has done nothing of what it was asked: once more, with a new one. */
  async #ask<Answer>(signal: AbortSignal, question: (client: Client) => Promise<Answer>): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      const isFirstUse = this.#session === undefined;
      this.#session ??= new McpSession(this.#connect());
      const session = this.#session;
      try {
        return await session.use(signal, question);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (!isAnswer(error)) this.#leave(session);
        const library = await loadLibrary();
        const isForgotten = !isFirstUse && error instanceof library.SdkHttpError && error.status === 404;
        if (!isForgotten || attempt > 1) throw this.#explained(error, library);
      }
    }
  }

  /** Others may still be waiting for it: it is closed when the last of them has gone. */
  #leave(session: McpSession): void {
    if (this.#session === session) this.#session = undefined;
    void session.retire();
  }

  #explained(error: unknown, library: typeof Library): McpServerError {
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      const said = this.#options.explain(at);
      if (said !== undefined) return new McpServerError(said, { cause: error });
    }
    return new McpServerError(describeError(error, library), { cause: error });
  }

  async #connect(): Promise<Client> {
    const library = await loadLibrary();
    const client = new library.Client(
      { name: 'concierge', version: '0.1.0' },
      // No user is there to answer, and no model is offered: the library answers requests for either with an error.
      { capabilities: {}, jsonSchemaValidator: anyValue, versionNegotiation: { mode: 'auto', probe: { timeoutMs: LIBRARY_TIMEOUT_MS } } },
    );
    const transport = new library.StreamableHTTPClientTransport(new URL(this.#server.url), {
      fetch: this.#options.fetch,
      requestInit: { headers: { ...this.#server.headers } },
      onInsufficientScope: 'throw',
      reconnectionOptions: { initialReconnectionDelay: 500, maxReconnectionDelay: 2000, reconnectionDelayGrowFactor: 2, maxRetries: 1 },
    });
    client.onerror = () => undefined; // Every call has its own error; those beside them are noise of the stream.
    const late = answerDeadline(LIST_TIMEOUT_MS);
    try {
      await unlessAborted(client.connect(transport, { timeout: LIBRARY_TIMEOUT_MS }), late);
      return client;
    } catch (error) {
      if (late.aborted) await transport.close();
      throw late.aborted ? timedOut : error;
    }
  }
}

/** One connected client and its users. */
class McpSession {
  readonly #client: Promise<Client>;
  #users = 0;
  #retired = false;

  constructor(client: Promise<Client>) {
    this.#client = client;
    client.catch(() => undefined);
  }

  async use<Answer>(signal: AbortSignal, question: (client: Client) => Promise<Answer>): Promise<Answer> {
    this.#users += 1;
    try {
      return await unlessAborted(this.#client.then(question), signal);
    } finally {
      this.#users -= 1;
      if (this.#retired) await this.retire();
    }
  }

  async retire(): Promise<void> {
    this.#retired = true;
    if (this.#users === 0) await this.#client.then(async (client) => client.close()).catch(() => undefined);
  }
}

/** An error that the server itself answered, over a connection that works. */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === 'ProtocolError';
}

function describeError(error: unknown, { SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError }: typeof Library): string {
  if (error === timedOut) return NO_ANSWER;
  if (error instanceof UnauthorizedError) return 'the server refuses the credentials (401)';
  if (error instanceof SdkHttpError) return `the server answered with HTTP status ${String(error.status ?? 'none')}`;
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) return NO_ANSWER;
  if (isAnswer(error) && error instanceof Error) return `the server answered: ${error.message.slice(0, 500)}`;
  return 'the server cannot be reached, or does not speak the protocol';
}
