import type { ChannelConnections } from '@concierge/channel';
import type { Core } from '@concierge/core';
import type { Outside } from '@concierge/core/outside';
import { FailedTurns } from '@concierge/core/failed-turns';
import { OperatedTurns } from '@concierge/core/operated-turns';
import { Reindexing } from '@concierge/core/reindex';
import { DeadLetters } from '@concierge/core/stuck-deliveries';
import { TenantOperations } from '@concierge/core/tenant-operations';
import { TenantSlots, type Log } from '@concierge/runtime';
import { canSendEmail, HistoryCursors, readRunningProcesses } from '@concierge/turn';
import type { MessageAcceptance } from '../chat/message-acceptance.ts';
import type { Handlers } from '../http/call.ts';
import type { Inbound } from '../inbound/inbound.ts';
import type { GatewayMetrics } from '../metrics.ts';
import { AgentTools, mcpHandlers } from '../mcp/mcp-handlers.ts';
import { GivenFiles } from '../openai/given-files.ts';
import { KnownHistories } from '../openai/known-histories.ts';
import {
  agentHandlers,
  tenantHandlers,
  type TenantHandlersOptions,
  skillHandlers,
  keyHandlers,
  cronHandlers,
  mcpServerHandlers,
  widgetSettingsHandlers,
  usageHandlers,
} from './tenant.ts';
import { channelHandlers, deliveryHandlers, handoffHandlers } from './channels.ts';
import { chatHandlers } from './chat.ts';
import { contactHandlers } from './contacts.ts';
import { eventHandlers } from './events.ts';
import { fileHandlers } from './files.ts';
import { erasureHandlers, memoryHandlers } from './memory.ts';
import { modelKeyHandlers } from './model-keys.ts';
import { modelHandlers } from '../openai/models.ts';
import { openAiHandlers } from '../openai/openai-handlers.ts';
import type { Siblings } from '../processes/siblings.ts';
import { operationHandlers, type OperationOptions } from '../operations/operations.ts';
import { auditHandlers, operatedTenantHandlers, reindexHandlers } from '../operations/tenants.ts';
import { failureHandlers, stuckDeliveryHandlers } from '../operations/failures.ts';
import { signInHandlers } from '../operations/sign-in.ts';
import { waitingHandlers } from '../operations/waiting.ts';
import type { FeedStreams } from '../sse/feed-streams.ts';
import type { Replies } from '../sse/replies.ts';
import { ownerHandlers } from './owner.ts';
import { staffHandlers } from './staff.ts';
import { promptHandlers } from './prompt.ts';
import { sessionHandlers } from './sessions.ts';
import { turnHandlers } from './turns.ts';
import { uploadHandlers } from '../upload/uploads.ts';
import { webhookHandlers } from './webhooks.ts';
import { widgetHandlers, type WidgetLimits } from '../widget/widget-handlers.ts';
import type { WidgetScript } from '../widget/widget-script.ts';

/** Requests whose files are in memory, for all tenants together and for one tenant; further requests wait. */
const uploadSlots = { count: 4, perTenant: 2 };

export interface HandlerParts {
  readonly core: Core;
  readonly outside: Outside;
  readonly acceptance: MessageAcceptance;
  readonly replies: Replies;
  readonly feedStreams: FeedStreams;
  readonly channels: {
    readonly inbound: Inbound;
    readonly connections: ChannelConnections;
    readonly publicUrl: string | undefined;
    readonly now: () => number;
  };
  readonly widget: { readonly limits: WidgetLimits; readonly script: WidgetScript };
  readonly operations: OperationOptions & {
    readonly siblings: Siblings;
    readonly opsToken: string | undefined;
    readonly dataDir: string;
    readonly hasPostgres: boolean;
    readonly metrics: GatewayMetrics;
    readonly log: Log;
  };
  readonly models: TenantHandlersOptions;
}

/** A handler for every route of the contract. */
export function createHandlers(parts: HandlerParts): Handlers {
  const { core, outside, acceptance, replies, feedStreams, channels, widget, operations, models } = parts;
  const { redis, index, tenants, turns, events } = core;
  const { inbound, connections, publicUrl, now } = channels;
  const { eventSender, mcpServers, outbound } = outside;
  const { metrics, log, dataDir, hasPostgres, opsToken, ...operating } = operations;
  const tenantOperations = new TenantOperations({ dataDir, tenants, running: async () => Promise.resolve({ turns, redis }), via: 'api' });
  const failedTurns = new FailedTurns({ tenants, turns: async () => Promise.resolve(turns), operations: tenantOperations });
  const operatedTurns = new OperatedTurns({ tenants, turns: async () => Promise.resolve(turns), operations: tenantOperations });
  const { siblings } = operating;
  // A page that looks at the health again and again fills no log.
  const deployed = { index: async () => Promise.resolve(index), hasPostgres, log: log.child({}, { level: 'silent' }) };
  const { count, perTenant } = uploadSlots;
  const storing = { metrics, atOnce: new TenantSlots({ count: siblings.share(count), perTenant: siblings.share(perTenant) }) };
  const givenFiles = new GivenFiles({ ...storing, siblings, outbound });
  const knownHistories = new KnownHistories(new HistoryCursors(redis));
  return {
    ...chatHandlers({ acceptance, replies }),
    ...openAiHandlers({ turns, acceptance, replies, givenFiles, knownHistories, log }),
    ...modelHandlers(),
    ...agentHandlers(),
    ...turnHandlers({ turns, replies, feedStreams }),
    ...sessionHandlers(),
    ...contactHandlers(),
    ...staffHandlers(),
    ...handoffHandlers({ desk: core.handoffs.desk }),
    ...skillHandlers(),
    ...uploadHandlers(storing),
    ...tenantHandlers(models),
    ...ownerHandlers({
      isDemo: models.isDemo,
      publicUrl,
      // Nothing depends on it.
      sendsEmail: async () => readRunningProcesses(redis).then(canSendEmail, () => null),
      exports: tenantOperations,
    }),
    ...promptHandlers(),
    ...fileHandlers(models),
    ...keyHandlers(),
    ...modelKeyHandlers({ operations: tenantOperations, ...models }),
    ...memoryHandlers(),
    ...erasureHandlers({ turns, redis, logsFolder: tenants.logsFolder }),
    ...usageHandlers(core),
    ...cronHandlers(),
    ...channelHandlers({ connections }),
    ...deliveryHandlers(),
    ...eventHandlers({ webhookEvents: events.outgoing, eventSender }),
    ...mcpServerHandlers({ mcpServers }),
    ...mcpHandlers({ agentTools: new AgentTools({ acceptance, replies }), drain: operating.drain, log }),
    ...widgetSettingsHandlers(),
    ...widgetHandlers({ turns, acceptance, replies, storing, widget }),
    ...webhookHandlers({ tenants, inbound, turns, metrics, publicUrl, now }),
    ...operationHandlers(operating),
    ...operatedTenantHandlers({ operations: tenantOperations }),
    ...reindexHandlers({ reindexing: new Reindexing({ tenants, operations: tenantOperations }) }),
    ...auditHandlers({ operations: tenantOperations, tenants }),
    ...stuckDeliveryHandlers({ deadLetters: new DeadLetters({ tenants, operations: tenantOperations }) }),
    ...failureHandlers({ failedTurns, operatedTurns, turns }),
    ...waitingHandlers({ redis, dataDir, feedStreams, operations: tenantOperations, deployed, ...operating }),
    ...signInHandlers({ opsToken }),
  };
}
