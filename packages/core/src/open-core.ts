import type { Embedder } from '@concierge/contract';
import { openIndex, type IndexStore } from '@concierge/index';
import {
  armFailpoints,
  assertNoEviction,
  openConnection,
  openRedis,
  stopPart,
  withSlots,
  type connectRedis,
  type Log,
  type RedisRole,
  type ServiceSettings,
} from '@concierge/runtime';
import { Tenants, toLogsFolder } from '@concierge/tenant';
import {
  agreeOnSlots,
  Budgets,
  ProcessLog,
  WakeupQueue,
  EventQueue,
  SharedLogs,
  HandoffNotifications,
  HandoffRequests,
  handoffRequested,
  Lanes,
  openDeliveryQueue,
  tellFeeds,
  tellRecordChanges,
  wakeOutboxBy,
  WebhookEvents,
  Turns,
  type DueQueue,
} from '@concierge/turn';

type Redis = ReturnType<typeof connectRedis>;

export type CoreConfig = Pick<ServiceSettings, 'dataDir' | 'redisUrl' | 'databaseUrl' | 'keySecret' | 'secretsKey' | 'failpoints'> &
  Partial<Pick<ServiceSettings, 'databasePool'>>;

export interface CoreOptions {
  /** `producer` fails fast, for a service whose clients wait. */
  readonly role: RedisRole;
  /** Computes embeddings, so that memory is also found by meaning. */
  readonly embedder?: Embedder | undefined;
  /** Tenants that stay open while nothing is done for them. */
  readonly openTenantsMax?: number | undefined;
  readonly log: Log;
}

/**
 * The queues of turns, deliveries, webhook events and handoffs, for every process that accepts or moves any of them.
 */
export interface TurnPath {
  readonly queue: { readonly lanes: Lanes; readonly wakeupQueue: WakeupQueue };
  readonly turns: Turns;
  /** What this process has accepted lately. */
  readonly accepted: ProcessLog;
  /** What all processes have accepted lately. */
  readonly logged: SharedLogs;
  readonly deliveries: DueQueue;
  readonly events: { readonly outgoing: WebhookEvents; readonly queue: EventQueue };
  readonly handoffs: { readonly desk: HandoffRequests; readonly calls: HandoffNotifications };
  readonly budgets: Budgets;
}

/** The objects that gateway, worker and cron share. */
export interface Core extends TurnPath {
  readonly redis: Redis;
  readonly index: IndexStore;
  readonly tenants: Tenants;
}

/**
 * Everything is opened on the stack, which closes it.
 * @throws ConfigError when Redis does not answer in time or may evict what was accepted, or a database lets nobody in
 */
export async function openCore(config: CoreConfig, stack: AsyncDisposableStack, options: CoreOptions): Promise<Core> {
  const { dataDir, databaseUrl, databasePool, keySecret, secretsKey } = config;
  const { role, embedder, openTenantsMax: openMax, log } = options;
  armFailpoints(config.failpoints);
  const redis = await openRedis({ url: config.redisUrl, role, log }, stack);
  await assertNoEviction(redis, log);
  await agreeOnSlots(redis, (slots) => openConnection({ url: withSlots(config.redisUrl, slots), role, log }, stack), log);
  const index = stack.adopt(await openIndex({ databaseUrl, databasePool, dataDir, log }), async (opened) => opened.close());
  const path = openTurnPath(redis, stack, { dataDir, log });
  const wakeOutbox = wakeOutboxBy(path.deliveries);
  const tenants = new Tenants({
    dataDir,
    index,
    keySecret,
    secretsKey,
    embedder,
    wakeOutbox,
    tell: tellFeeds(redis),
    tellRecordChange: tellRecordChanges(redis),
    logged: path.logged,
    wal: path.accepted,
    openMax,
    log,
  });
  return { ...path, redis, index, tenants };
}

/** A part of `openCore`; called alone where a command needs no tenants' files. */
export function openTurnPath(
  redis: Redis,
  stack: AsyncDisposableStack,
  { dataDir, log }: { readonly dataDir: string; readonly log: Log },
): TurnPath {
  const deliveries = stack.adopt(openDeliveryQueue(redis, log), stopPart);
  const wakeupQueue = stack.adopt(new WakeupQueue(redis, log), stopPart);
  const queue = { lanes: new Lanes(redis, wakeupQueue), wakeupQueue };
  const folder = toLogsFolder(dataDir);
  const accepted = stack.adopt(new ProcessLog({ redis, folder, log }), stopPart);
  const logged = new SharedLogs({ redis, lanes: queue.lanes, folder });
  const turns = stack.adopt(new Turns({ redis, ...queue, accepted, log }), stopPart);
  const eventQueue = stack.adopt(new EventQueue(redis, log), stopPart);
  const events = { outgoing: new WebhookEvents({ queue: eventQueue, log }), queue: eventQueue };
  const calls = new HandoffNotifications({
    turns,
    onRequested: async (scope, handoff) => events.outgoing.emit(scope, handoffRequested(handoff)),
    log,
  });
  const desk = new HandoffRequests({ turns, calls });
  const budgets = new Budgets({ redis, webhookEvents: events.outgoing, log });
  return { queue, turns, accepted, logged, deliveries, events, handoffs: { desk, calls }, budgets };
}
