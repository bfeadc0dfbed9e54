import type { ChatAppConnections } from '@concierge/channel';
import type { McpServers } from '@concierge/mcp';
import type { Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import type { EventSender, HandoffDesk, HistoryMarks, OutgoingEvents, TurnStreams, Turns } from '@concierge/turn';
import { TenantSlots, type Outbound } from '@concierge/web';
import { Admission } from '../chat/admission.ts';
import type { StreamQuota } from '../chat/stream-quota.ts';
import type { Handlers } from '../http/call.ts';
import type { Drain } from '../http/drain.ts';
import type { Inbound } from '../inbound/inbound.ts';
import type { GatewayMetrics } from '../metrics.ts';
import { AgentTools } from '../mcp/agent-tools.ts';
import { GivenFiles } from '../openai/given-files.ts';
import { KnownHistories } from '../openai/known-histories.ts';
import type { QueueDashboard } from '../ops/queue-dashboard.ts';
import type { EventStreams } from '../sse/event-streams.ts';
import { agentHandlers } from './agents.ts';
import { channelHandlers } from './channels.ts';
import { chatHandlers } from './chat.ts';
import { cronHandlers } from './cron.ts';
import { deliveryHandlers } from './deliveries.ts';
import { eventHandlers } from './events.ts';
import { fileHandlers } from './files.ts';
import { handoffHandlers } from './handoffs.ts';
import { keyHandlers } from './keys.ts';
import { mcpHandlers } from './mcp.ts';
import { mcpServerHandlers } from './mcp-servers.ts';
import { memoryHandlers } from './memory.ts';
import type { ModelNames } from './model-names.ts';
import { modelHandlers } from './models.ts';
import { openAiHandlers } from './openai.ts';
import { operationHandlers } from './operations.ts';
import type { ReadinessChecks } from './readiness.ts';
import { sessionHandlers } from './sessions.ts';
import { skillHandlers } from './skills.ts';
import { tenantHandlers, type TenantHandlersOptions } from './tenant.ts';
import { turnHandlers } from './turns.ts';
import { uploadHandlers } from './uploads.ts';
import { usageHandlers } from './usage.ts';
import { webhookHandlers } from './webhooks.ts';
import { widgetSettingsHandlers } from './widget-settings.ts';
import { widgetHandlers } from './widget.ts';
import type { WidgetLimits } from '../widget/widget-limits.ts';
import type { WidgetScript } from '../widget/widget-script.ts';

/** Turns being accepted at once; several times what a disk writes down in a second would only wait. */
const TURNS_ON_THEIR_WAY = 2000;

/** Requests whose files are in memory, over all tenants and of one of them; the others wait with theirs. */
const uploadSlots = { count: 4, perTenant: 2 };

export interface HandlerOptions extends TenantHandlersOptions {
  readonly tenants: Tenants;
  readonly inbound: Inbound;
  readonly turns: Turns;
  readonly turnStreams: TurnStreams;
  readonly handoffDesk: HandoffDesk;
  readonly historyMarks: HistoryMarks;
  readonly modelNames: ModelNames;
  readonly streamQuota: StreamQuota;
  readonly eventStreams: EventStreams;
  readonly queueDashboard: QueueDashboard;
  readonly mcpServers: McpServers;
  readonly outbound: Outbound;
  readonly connections: ChatAppConnections;
  readonly widgetLimits: WidgetLimits;
  readonly widgetScript: WidgetScript;
  readonly outgoingEvents: OutgoingEvents;
  readonly eventSender: EventSender;
  readonly metrics: GatewayMetrics;
  readonly drain: Drain;
  readonly checks: ReadinessChecks;
  readonly publicUrl: string | undefined;
  readonly now: () => number;
  readonly log: Log;
}

/** A handler for every route of the contract. */
export function createHandlers(options: HandlerOptions): Handlers {
  const { tenants, turns, turnStreams, eventStreams, queueDashboard, mcpServers, outbound, inbound, connections, metrics, drain } = options;
  const { handoffDesk, historyMarks, streamQuota, widgetLimits, widgetScript, outgoingEvents, eventSender, checks, publicUrl, now, log } =
    options;
  const accepting = { turns, metrics, streamQuota, admission: new Admission(TURNS_ON_THEIR_WAY) };
  const storing = { metrics, atOnce: new TenantSlots(uploadSlots) };
  return {
    ...chatHandlers({ ...accepting, turnStreams, eventStreams, drain }),
    ...openAiHandlers({
      ...accepting,
      turnStreams,
      eventStreams,
      drain,
      log,
      givenFiles: new GivenFiles({ ...storing, outbound }),
      knownHistories: new KnownHistories(historyMarks),
    }),
    ...modelHandlers(),
    ...agentHandlers(),
    ...turnHandlers({ turns, eventStreams }),
    ...sessionHandlers(),
    ...handoffHandlers({ desk: handoffDesk }),
    ...skillHandlers(),
    ...uploadHandlers(storing),
    ...tenantHandlers(options),
    ...fileHandlers(),
    ...keyHandlers(),
    ...memoryHandlers(),
    ...usageHandlers(),
    ...cronHandlers(),
    ...channelHandlers({ connections }),
    ...deliveryHandlers(),
    ...eventHandlers({ outgoingEvents, eventSender }),
    ...mcpServerHandlers({ mcpServers }),
    ...mcpHandlers({ agentTools: new AgentTools({ ...accepting, turnStreams }), drain, log }),
    ...widgetSettingsHandlers(),
    ...widgetHandlers({ ...accepting, turnStreams, eventStreams, drain, widgetLimits, widgetScript }),
    ...webhookHandlers({ tenants, inbound, metrics, publicUrl, now }),
    ...operationHandlers({ checks, drain, queueDashboard, registry: metrics.registry }),
  };
}
