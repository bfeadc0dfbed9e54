import { ChannelConnections } from '@concierge/channel';
import { announceProcess, openCore } from '@concierge/core';
import { openOutside } from '@concierge/core/outside';
import { background, openConnection, stopPart, type ServiceParts } from '@concierge/runtime';
import { DeliveryReceipts, RateLimits, StreamBytes, emitDeliveries, hearRecordChanges, TenantFeeds, TurnStreams } from '@concierge/turn';
import { widgetFile } from '@concierge/widget';
import { createApp } from './app.ts';
import { MessageAcceptance } from './chat/message-acceptance.ts';
import type { Config } from './config.ts';
import { createHandlers } from './handlers/handlers.ts';
import { Drain } from './http/http-server.ts';
import { createHttpServer, httpDrain, listen } from './http/http-server.ts';
import { RouteServer } from './http/serve-route.ts';
import { Inbound } from './inbound/inbound.ts';
import { GatewayMetrics } from './metrics.ts';
import { QueueDashboard } from './operations/queue-dashboard.ts';
import { ModelNames } from './openai/model-names.ts';
import { Siblings } from './processes/siblings.ts';
import { readinessChecks, isDemoModel } from './operations/readiness.ts';
import { FeedStreams } from './sse/feed-streams.ts';
import { Replies } from './sse/replies.ts';
import { sweepReceivedFiles } from './upload/uploads.ts';
import { WidgetLimits } from './widget/widget-handlers.ts';
import { WidgetScript } from './widget/widget-script.ts';

/**
 * Builds the whole service, in order, top to bottom; the stack closes it in the reverse order. `now`: what signatures
 * with a time in them are compared with. Answers with the port on which it listens.
 */
export async function wire(config: Config, { stack, log }: ServiceParts, now: () => number = Date.now): Promise<number> {
  const core = await openCore(config, stack, { role: 'producer', log });
  announceProcess({ service: 'gateway', ...config }, core, { stack, log });
  const { redis, index, tenants, queue, turns, deliveries, events, budgets } = core;
  const subscriber = openConnection({ url: config.redisUrl, role: 'subscriber', log }, stack);
  hearRecordChanges({ tenants, subscriber, log });
  const turnStreams = stack.adopt(new TurnStreams({ redis, subscriber, lanes: queue.lanes, log }), stopPart);
  const outside = openOutside(config, stack);
  const metrics = new GatewayMetrics(config.dataDir);
  const siblings = await Siblings.open(config.processes, metrics.registry);
  const { counts } = siblings;
  const drain = new Drain(counts);
  const replies = new Replies({ turns: turnStreams, metrics, counts, maxPerKey: config.maxStreamsPerKey, drain });
  const feedStreams = new FeedStreams({ feeds: new TenantFeeds({ subscriber, log }), metrics, counts });
  const streams = new DisposableStack();
  streams.use(replies);
  streams.use(feedStreams);
  const streamQuota = new StreamBytes(redis, log);
  const receipts = new DeliveryReceipts({ redis, onReported: emitDeliveries(events.outgoing) });
  const rateLimits = new RateLimits(redis);
  const handlers = createHandlers({
    core,
    outside,
    acceptance: new MessageAcceptance({ turns, streamQuota, budgets, metrics, siblings }),
    replies,
    feedStreams,
    channels: {
      inbound: new Inbound({ turns, streamQuota, receipts, metrics, siblings, providerUrls: config.providerUrls, log }),
      connections: new ChannelConnections({ urls: config.providerUrls, publicUrl: config.publicUrl }),
      publicUrl: config.publicUrl,
      now,
    },
    widget: { limits: new WidgetLimits(rateLimits), script: new WidgetScript(widgetFile) },
    operations: {
      checks: readinessChecks({ redis, index, dataDir: config.dataDir }),
      queueDashboard: new QueueDashboard([...queue.wakeupQueue.queues, ...deliveries.queues, ...events.queue.endpoints.queues]),
      drain,
      dataDir: config.dataDir,
      hasPostgres: config.databaseUrl !== undefined,
      opsToken: config.opsToken,
      metrics,
      siblings,
      log,
    },
    models: { modelNames: new ModelNames(config.providersFile, log), isDemo: async () => isDemoModel(redis) },
  });
  const server = new RouteServer({ tenants, rateLimits, drain, siblings, opsToken: config.opsToken, metrics, log });
  const app = createApp({ server, handlers, tenants, metrics, log });
  const { maxConnections, keepAliveMs, unreadAnswerMs, leaveMs, leaveAtMostMs } = config;
  const http = createHttpServer({ app, maxConnections, keepAliveMs, unreadAnswerMs, counts });
  const drainHttp = httpDrain(http, { drain, streams, leaveMs, leaveAtMostMs, orphaned: siblings.orphaned });
  stack.defer(async () => drainHttp(stack.graceLeftMs));
  const port = await listen(http, config);
  background(sweepReceivedFiles(), log);
  log.info({ port }, 'gateway is listening');
  return port;
}
