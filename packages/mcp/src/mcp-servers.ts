import { LRUCache } from 'lru-cache';
import { McpConnection, type McpConnectionOptions } from './mcp-connection.ts';
import { unlessAborted } from './unless-aborted.ts';
import { McpServerError, type McpCallResult, type McpServer, type McpToolList } from './mcp-tools.ts';

const CONNECTIONS_MAX = 500;
/** A connection that was not used for so long is closed. */
const IDLE_MS = 10 * 60_000;
const FRESH_MS = 5 * 60_000;
/** Until then an old list is used while a new one is fetched beside the turn. */
const USABLE_MS = 60 * 60_000;
/** A server that failed is not asked again for so long: its turns must not all wait for it. */
const FAILED_MS = 30_000;

interface Known {
  readonly connection: McpConnection;
  list: McpToolList | undefined;
  listedAtMs: number;
  failure: McpServerError | undefined;
  failedAtMs: number;
  asking: Promise<McpToolList> | undefined;
}

/** `fetch` is guarded: the addresses are the tenants'. */
export interface McpServersOptions extends McpConnectionOptions {
  readonly now?: () => number;
}

/** All attached servers that this process uses: connections are kept, lists of tools remembered, failures too. */
export class McpServers {
  readonly #options: McpServersOptions;
  readonly #now: () => number;
  readonly #known: LRUCache<string, Known>;

  constructor(options: McpServersOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#known = new LRUCache({
      max: CONNECTIONS_MAX,
      ttl: IDLE_MS,
      updateAgeOnGet: true,
      ttlAutopurge: true,
      dispose: ({ connection }) => void connection.close(),
    });
  }

  /**
   * The server's tools: remembered ones at once, though they may be an hour old; else asked for, for a few seconds at
   * most.
   * @throws McpServerError, also when it failed a moment ago
   */
  async tools(tenantId: string, server: McpServer, signal: AbortSignal): Promise<McpToolList> {
    const known = this.#findKnown(tenantId, server);
    const age = this.#now() - known.listedAtMs;
    if (known.list !== undefined && age < FRESH_MS) return known.list;
    if (known.failure !== undefined && this.#now() - known.failedAtMs < FAILED_MS) {
      if (known.list !== undefined && age < USABLE_MS) return known.list;
      throw known.failure;
    }
    const asking = this.#ask(known, signal);
    if (known.list === undefined || age >= USABLE_MS) return asking;
    asking.catch(() => undefined);
    return known.list;
  }

  /** Asked just now, whatever is remembered. @throws McpServerError */
  async freshTools(tenantId: string, server: McpServer, signal: AbortSignal): Promise<McpToolList> {
    return this.#ask(this.#findKnown(tenantId, server), signal);
  }

  /** @throws McpServerError */
  async call(
    tenantId: string,
    server: McpServer,
    { tool, input, signal }: { readonly tool: string; readonly input: Readonly<Record<string, unknown>>; readonly signal: AbortSignal },
  ): Promise<McpCallResult> {
    return this.#findKnown(tenantId, server).connection.call(tool, input, signal);
  }

  async close(): Promise<void> {
    const open = [...this.#known.values()].map(({ connection }) => connection);
    this.#known.clear();
    await Promise.all(open.map(async (connection) => connection.close()));
  }

  #findKnown(tenantId: string, server: McpServer): Known {
    const key = JSON.stringify([tenantId, server.name, server.revision]);
    const kept = this.#known.get(key);
    if (kept !== undefined) return kept;
    const connection = new McpConnection(server, this.#options);
    const known: Known = {
      connection,
      list: undefined,
      listedAtMs: -Infinity,
      failure: undefined,
      failedAtMs: -Infinity,
      asking: undefined,
    };
    this.#known.set(key, known);
    return known;
  }

  /** Turns that begin at the same time share one question; one that is cancelled leaves it to the others. */
  async #ask(known: Known, signal: AbortSignal): Promise<McpToolList> {
    known.asking ??= this.#list(known).finally(() => {
      known.asking = undefined;
    });
    return unlessAborted(known.asking, signal);
  }

  async #list(known: Known): Promise<McpToolList> {
    try {
      const list = await known.connection.list();
      Object.assign(known, { list, listedAtMs: this.#now(), failure: undefined });
      return list;
    } catch (error) {
      if (error instanceof McpServerError) Object.assign(known, { failure: error, failedAtMs: this.#now() });
      throw error;
    }
  }
}
