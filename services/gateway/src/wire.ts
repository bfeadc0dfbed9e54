import { ChatAppConnections } from '@concierge/channel';
import { openIndex } from '@concierge/index';
import { McpServers } from '@concierge/mcp';
import { armFailpoints, assertNoEviction, background, connectRedis, redisReady, type Log, type Running } from '@concierge/runtime';
import { Tenants } from '@concierge/tenant';
import {
  DeliveryBells,
  DeliveryLanes,
  DeliveryReceipts,
  Doorbells,
  EventBells,
  eventFetchPolicy,
  EventSender,
  HandoffCalls,
  HandoffDesk,
  HistoryMarks,
  handoffRequested,
  Lanes,
  OutgoingEvents,
  RateLimits,
  StreamBytes,
  tellDeliveries,
  Turns,
  TurnStreams,
  type HandoffCallsOptions,
} from '@concierge/turn';
import { Outbound, OutboundError } from '@concierge/web';
import { widgetFile } from '@concierge/widget';
import { createApp } from './app.ts';
import { StreamQuota } from './chat/stream-quota.ts';
import type { Config } from './config.ts';
import { createHandlers } from './handlers/handlers.ts';
import { Drain } from './http/drain.ts';
import { createHttpServer, listen, stoppableHttp } from './http/http-server.ts';
import { RouteServer } from './http/serve-route.ts';
import { Inbound } from './inbound/inbound.ts';
import { GatewayMetrics } from './metrics.ts';
import { QueueDashboard } from './ops/queue-dashboard.ts';
import { ModelNames } from './handlers/model-names.ts';
import { readinessChecks } from './handlers/readiness-checks.ts';
import { isDemoModel } from './handlers/workers-alive.ts';
import { EventStreams } from './sse/event-streams.ts';
import { sweepReceivedFiles } from './upload/receive-files.ts';
import { WidgetLimits } from './widget/widget-limits.ts';
import { WidgetScript } from './widget/widget-script.ts';

const REDIS_START_TIMEOUT_MS = 30_000;

/** Builds the whole service, in order, top to bottom. `now`: what signatures with a time in them are compared with. */
export async function wire(config: Config, log: Log, now: () => number = Date.now): Promise<Running & { readonly port: number }> {
  armFailpoints(config.failpoints);
  const redis = connectRedis({ url: config.redisUrl, role: 'producer', log });
  await redisReady(redis, REDIS_START_TIMEOUT_MS);
  await assertNoEviction(redis, log);
  const subscriber = connectRedis({ url: config.redisUrl, role: 'subscriber', log });
  const index = await openIndex({ databaseUrl: config.databaseUrl, dataDir: config.dataDir, log });
  const deliveryBells = new DeliveryBells({ redis, lanes: new DeliveryLanes(redis), log });
  const { dataDir, keySecret, secretsKey } = config;
  const tenants = new Tenants({ dataDir, index, keySecret, secretsKey, outboxBell: async (lane) => deliveryBells.ring(lane), log });
  const doorbells = new Doorbells(redis, log);
  const turns = new Turns({ redis, lanes: new Lanes(redis), doorbells, log });
  const turnStreams = new TurnStreams({ redis, subscriber, log });
  const metrics = new GatewayMetrics();
  const drain = new Drain();
  const eventStreams = new EventStreams({ turns: turnStreams, metrics, maxPerKey: config.maxStreamsPerKey, drain });
  const checks = readinessChecks({ redis, index, dataDir: config.dataDir });
  const bells = new EventBells(redis, log);
  const outgoingEvents = new OutgoingEvents({ bells, log });
  const onRequested: HandoffCallsOptions['onRequested'] = async (scope, handoff) => outgoingEvents.emit(scope, handoffRequested(handoff));
  const handoffDesk = new HandoffDesk({ turns, calls: new HandoffCalls({ turns, onRequested, log }) });
  const queueDashboard = new QueueDashboard([...doorbells.queues, deliveryBells.queue, bells.queue]);
  const outbound = new Outbound({ allow: config.outboundAllow });
  const explain = (error: unknown): string | undefined => (error instanceof OutboundError ? error.message : undefined);
  const mcpServers = new McpServers({ fetch: outbound.fetcher(), explain });
  const eventSender = new EventSender({ fetch: outbound.fetcher(eventFetchPolicy), explain });
  const connections = new ChatAppConnections({ urls: config.providerUrls, publicUrl: config.publicUrl });
  const receipts = new DeliveryReceipts({ redis, told: tellDeliveries(outgoingEvents) });
  const streamQuota = new StreamQuota(new StreamBytes(redis, log));
  const inbound = new Inbound({ turns, streamQuota, receipts, metrics, providerUrls: config.providerUrls, log });
  const rateLimits = new RateLimits(redis);
  const widget = { widgetLimits: new WidgetLimits(rateLimits), widgetScript: new WidgetScript(widgetFile) };
  const serving = { turns, turnStreams, eventStreams, metrics, drain, log };
  const handlers = createHandlers({
    ...serving,
    ...widget,
    tenants,
    handoffDesk,
    historyMarks: new HistoryMarks(redis),
    streamQuota,
    modelNames: new ModelNames(config.providersFile, log),
    queueDashboard,
    mcpServers,
    outbound,
    inbound,
    connections,
    outgoingEvents,
    eventSender,
    checks,
    isDemo: async () => isDemoModel(redis),
    publicUrl: config.publicUrl,
    now,
  });
  const server = new RouteServer({ tenants, rateLimits, drain, opsToken: config.opsToken, metrics, log });
  const app = createApp({ server, handlers, tenants, metrics, log });
  const { maxConnections, keepAliveMs, unreadAnswerMs } = config;
  const http = createHttpServer({ app, maxConnections, keepAliveMs, unreadAnswerMs });
  const port = await listen(http, config);
  background(sweepReceivedFiles(), log);
  log.info({ port }, 'gateway is listening');
  return {
    port,
    stopInOrder: [
      stoppableHttp(http, { drain, streams: eventStreams, leaveMs: config.leaveMs }),
      { name: 'MCP servers', stop: async () => mcpServers.close() },
      { name: 'turn streams', stop: async () => turnStreams.stop() },
      turns,
      { name: 'event bells', stop: async () => bells.stop() },
      { name: 'doorbells', stop: async () => doorbells.stop() },
      { name: 'delivery bells', stop: async () => deliveryBells.stop() },
      { name: 'index', stop: async () => index.close() },
      { name: 'redis', stop: async () => void (await redis.quit()) },
    ],
  };
}
