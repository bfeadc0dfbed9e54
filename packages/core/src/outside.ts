import { McpServers } from '@concierge/mcp';
import { eventFetchPolicy, EventSender } from '@concierge/turn';
import { Outbound, OutboundError, type OutboundPolicy } from '@concierge/web';

/** Clients for addresses of tenants outside the deployment, all behind one guard. */
export interface Outside {
  readonly outbound: Outbound;
  readonly mcpServers: McpServers;
  readonly eventSender: EventSender;
}

export interface OutsideOptions {
  /** `host:port`s that URLs of tenants may resolve to although they are not public. */
  readonly outboundAllow: readonly string[];
  /** The policy for calls of MCP servers; default: the guard's own. */
  readonly mcpPolicy?: Partial<OutboundPolicy>;
}

/** The stack closes the connections. */
export function openOutside({ outboundAllow, mcpPolicy }: OutsideOptions, stack: AsyncDisposableStack): Outside {
  const outbound = new Outbound({ allow: outboundAllow });
  const explain = (error: unknown): string | undefined => (error instanceof OutboundError ? error.message : undefined);
  const mcpServers = stack.adopt(new McpServers({ fetch: outbound.fetcher(mcpPolicy), explain }), async (opened) => opened.close());
  return { outbound, mcpServers, eventSender: new EventSender({ fetch: outbound.fetcher(eventFetchPolicy), explain }) };
}
