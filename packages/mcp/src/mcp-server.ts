/** One attached server, ready to connect to: secrets opened. */
export interface McpServer {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Only these of its tools; null: all. */
  readonly tools: readonly string[] | null;
  readonly timeoutMs: number;
  /** Changes whenever anything of the server does: an open connection is then left. */
  readonly revision: string;
}

/** One tool of a server as a model may be offered it. Its description is the server's claim. */
export interface McpTool {
  /** As the model sees it: `mcp__<server>__<tool>`. */
  readonly name: string;
  /** As the server knows it. */
  readonly remoteName: string;
  readonly description: string;
  /** An object schema. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The server claims that it changes nothing. */
  readonly isReadOnly: boolean;
}

export interface McpToolList {
  readonly protocolVersion: string | null;
  readonly tools: readonly McpTool[];
}

export interface McpCallResult {
  readonly text: string;
  readonly isError: boolean;
}

/**
 * The server cannot be reached, or does not follow the protocol. The message is for the tenant: nothing internal in it.
 */
export class McpServerError extends Error {
  override readonly name = 'McpServerError';
}
