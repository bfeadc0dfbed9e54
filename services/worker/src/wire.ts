import { allTools } from '@concierge/agent';
import { limits } from '@concierge/contract';
import { openIndex } from '@concierge/index';
import { McpServers } from '@concierge/mcp';
import { estimateTokens, type Providers } from '@concierge/model';
import { Embeddings, Models } from '@concierge/model/openai';
import {
  armFailpoints,
  assertNoEviction,
  connectRedis,
  newMetrics,
  redisReady,
  serveMetrics,
  type Log,
  type Running,
} from '@concierge/runtime';
import { BubblewrapSandboxes } from '@concierge/sandbox/bubblewrap';
import { DockerSandboxes } from '@concierge/sandbox/docker';
import { Tenants, type OutboxBell } from '@concierge/tenant';
import {
  DeliveryBells,
  DeliveryLanes,
  DeliveryReceipts,
  DeliverySweeper,
  DeliveryWorker,
  Doorbells,
  EventBells,
  eventFetchPolicy,
  EventSender,
  EventSweeper,
  EventWorker,
  HandoffCalls,
  HandoffDesk,
  handoffRequested,
  HandoffWatch,
  Lanes,
  OutgoingEvents,
  Sweeper,
  tellDeliveries,
  Turns,
  TurnStreams,
  TurnWorker,
  type DeliverNext,
} from '@concierge/turn';
import { UploadTexts } from '@concierge/upload';
import { DocumentReader, Outbound, OutboundError, WebPages, WebSearch } from '@concierge/web';
import { RunFolders } from './capabilities/runtime/run-folders.ts';
import { SandboxReaper } from './capabilities/runtime/sandbox-reaper.ts';
import { TurnRuntime } from './capabilities/runtime/turn-runtime.ts';
import { WorkerLiveness } from './capabilities/runtime/worker-liveness.ts';
import type { Lenders } from './capabilities/turn-capabilities.ts';
import { lendSubagents } from './capabilities/subagents.ts';
import { webLender } from './capabilities/web.ts';
import { openChatApps } from './chat-apps/chat-apps.ts';
import { AttachedTools } from './attached-tools.ts';
import { chooseSandbox } from './choose-sandbox.ts';
import { chooseProviders } from './choose-models.ts';
import type { Config } from './config.ts';
import { crowdedModels } from './context-figures.ts';
import { answerFollowUp } from './deliveries/answer-follow-up.ts';
import { Deliverer } from './deliveries/deliverer.ts';
import { failureFollowUp } from './deliveries/failure-follow-up.ts';
import { DeliveryMetrics } from './deliveries/delivery-metrics.ts';
import { EventMetrics } from './event-metrics.ts';
import { withModelFailpoint, withToolFailpoints } from './fail-points.ts';
import { HandoffCommands } from './handoff-commands.ts';
import { sendPersonsWords } from './send-persons-words.ts';
import { tellTurnEnd } from './tell-turn-end.ts';
import { TurnMetrics } from './turn-metrics.ts';
import { TurnWarnings } from './turn-warnings.ts';
import { TurnRunner } from './turn-runner.ts';

type Redis = ReturnType<typeof connectRedis>;
type Registry = ReturnType<typeof newMetrics>;

const REDIS_START_TIMEOUT_MS = 30_000;
const VERSION = '0.1.0';

/** Builds the whole service, in order, top to bottom. */
export async function wire(config: Config, log: Log): Promise<Running> {
  armFailpoints(config.failpoints);
  const isBreakable = config.failpoints !== '';
  const { providers, demo } = await chooseProviders(config, log);
  const redis = await openRedis(config, log);
  const subscriber = connectRedis({ url: config.redisUrl, role: 'subscriber', log });
  const index = await openIndex({ databaseUrl: config.databaseUrl, dataDir: config.dataDir, log });

  // Its tables are made at the first use, which takes long enough to be felt: not in somebody's turn.
  estimateTokens('warm');
  const registry = newMetrics('worker');
  const metrics: TurnMetrics = new TurnMetrics(registry, () => worker.running);
  const embedder = providers.embeddings === null ? undefined : openEmbeddings(providers.embeddings, { metrics, log });
  const { dataDir, keySecret, secretsKey, concurrency, tenantShare } = config;
  const outgoing = wireDeliveries(redis, log);
  const tenants = new Tenants({ dataDir, index, keySecret, secretsKey, embedder, outboxBell: outgoing.outboxBell, log });
  const models = openModels(providers, { metrics, log });
  const { lanes, doorbells, turns, turnStreams } = wireTurns(config, redis, log);
  const { pages, uploadTexts, search, mcpServers, eventSender } = wireOutside(config, log);
  const attachedTools = new AttachedTools({ servers: mcpServers, log });
  const commands = await wireCommands(config, { redis, workerId: () => worker.id, log });
  const events = wireEvents({ redis, tenants, sender: eventSender, metrics: new EventMetrics(registry), log });
  const handoffs = wireHandoffs({ turns, tenants, events: events.outgoing, log });
  const runner = new TurnRunner({
    modelFor: (ref) => (isBreakable ? withModelFailpoint(models.forRef(ref)) : models.forRef(ref)),
    tools: isBreakable ? withToolFailpoints(allTools) : allTools,
    lenders: {
      runtime: commands.lend,
      web: webLender({ pages, search, log }),
      ...lendSubagents({ turns, streams: turnStreams }),
      askPerson: handoffs.askPerson,
      readUpload: (run) => async (upload, signal) => uploadTexts.read(run.scope, upload, signal),
    },
    commands: handoffs.commands,
    chatApps: openChatApps({ urls: config.providerUrls, log }),
    attachedTools: async (run) => attachedTools.of(run),
    followUps: [answerFollowUp, failureFollowUp(handoffs.askPerson), sendPersonsWords, tellTurnEnd(events.outgoing)],
    warn: new TurnWarnings({ outgoingEvents: events.outgoing, log }).report,
    metrics,
    log,
  });

  const worker: TurnWorker = new TurnWorker({
    runTurn: async (run) => runner.runTurn(run),
    failTurn: async (run, code) => runner.failTurn(run, code),
    redis,
    subscriber,
    lanes,
    doorbells,
    tenants,
    log,
    concurrency,
    tenantShare,
    version: VERSION,
    isDemo: demo !== undefined,
  });
  const sweeper = new Sweeper({ redis, lanes, doorbells, tenants, log });
  const deliveries = startableDeliveries(config, { ...outgoing, redis, tenants, events: events.outgoing, registry, log });
  const metricsServer = config.metrics === undefined ? undefined : await serveMetrics(registry, config.metrics);
  await worker.start();
  for (const part of [sweeper, deliveries, events, commands.reaper, handoffs.watch]) part.start();
  return {
    stopInOrder: [
      together(worker, deliveries),
      ...events.stopInOrder,
      sweeper,
      handoffs.watch,
      ...commands.stopInOrder,
      { name: 'turn streams', stop: async () => turnStreams.stop() },
      { name: 'MCP servers', stop: async () => mcpServers.close() },
      { name: 'models', stop: async () => Promise.resolve(models.close()) },
      { name: 'embeddings', stop: async () => Promise.resolve(embedder?.close()) },
      ...(demo === undefined ? [] : [demo]),
      ...(metricsServer === undefined ? [] : [metricsServer]),
      turns,
      { name: 'doorbells', stop: async () => doorbells.stop() },
      { name: 'delivery bells', stop: async () => outgoing.bells.stop() },
      { name: 'index', stop: async () => index.close() },
      { name: 'redis', stop: async () => void (await redis.quit()) },
    ],
  };
}

async function openRedis({ redisUrl }: Pick<Config, 'redisUrl'>, log: Log): Promise<Redis> {
  const redis = connectRedis({ url: redisUrl, role: 'worker', log });
  await redisReady(redis, REDIS_START_TIMEOUT_MS);
  await assertNoEviction(redis, log);
  return redis;
}

/** The way of turns that others ask for in the middle of one: in, and back. */
function wireTurns({ redisUrl }: Config, redis: Redis, log: Log): TurnParts {
  const lanes = new Lanes(redis);
  const doorbells = new Doorbells(redis, log);
  const turns = new Turns({ redis, lanes, doorbells, log });
  const turnStreams = new TurnStreams({ redis, subscriber: connectRedis({ url: redisUrl, role: 'subscriber', log }), log });
  return { lanes, doorbells, turns, turnStreams };
}

interface TurnParts {
  readonly lanes: Lanes;
  readonly doorbells: Doorbells;
  readonly turns: Turns;
  readonly turnStreams: TurnStreams;
}

interface HandoffParts {
  readonly turns: Turns;
  readonly tenants: Tenants;
  readonly events: OutgoingEvents;
  readonly log: Log;
}

/** What lets conversations pass between agents and persons. */
function wireHandoffs({ turns, tenants, events, log }: HandoffParts): {
  readonly askPerson: Lenders['askPerson'];
  readonly commands: HandoffCommands;
  readonly watch: HandoffWatch;
} {
  const calls = new HandoffCalls({ turns, onRequested: async (scope, handoff) => events.emit(scope, handoffRequested(handoff)), log });
  const desk = new HandoffDesk({ turns, calls });
  return {
    askPerson:
      ({ scope, turn }) =>
      async (asked) =>
        desk.ask(scope, turn, asked),
    commands: new HandoffCommands(desk),
    watch: new HandoffWatch({ tenants, calls, log }),
  };
}

/** What leads out of the deployment: all but the operator's own search goes through one guard. */
function wireOutside(
  { outboundAllow, webSearch }: Pick<Config, 'outboundAllow' | 'webSearch'>,
  log: Log,
): {
  readonly pages: WebPages;
  readonly uploadTexts: UploadTexts;
  readonly search: WebSearch | undefined;
  readonly mcpServers: McpServers;
  readonly eventSender: EventSender;
} {
  const outbound = new Outbound({ allow: outboundAllow });
  const explain = (error: unknown): string | undefined => (error instanceof OutboundError ? error.message : undefined);
  const mcpServers = new McpServers({ fetch: outbound.fetcher({ timeoutMs: limits.toolTimeoutMaxMs }), explain });
  const eventSender = new EventSender({ fetch: outbound.fetcher(eventFetchPolicy), explain });
  // One for all: its slots count every document that this process has read.
  const documents = new DocumentReader();
  const search = webSearch === undefined ? undefined : new WebSearch(webSearch);
  return {
    pages: new WebPages(outbound, documents),
    uploadTexts: new UploadTexts({ documents, log }),
    search,
    mcpServers,
    eventSender,
  };
}

interface EventParts {
  readonly redis: ReturnType<typeof connectRedis>;
  readonly tenants: Tenants;
  readonly sender: EventSender;
  readonly metrics: EventMetrics;
  readonly log: Log;
}

/** What tells tenants' own systems of what happens; turns that are still running when it stops leave their events to the others. */
function wireEvents({ redis, tenants, sender, metrics, log }: EventParts): Running & { readonly outgoing: OutgoingEvents; start(): void } {
  const bells = new EventBells(redis, log);
  const onTried: EventMetrics['tried'] = (type, outcome) => {
    metrics.tried(type, outcome);
  };
  const worker = new EventWorker({ redis, bells, tenants, sender, onTried, log });
  const sweeper = new EventSweeper({ redis, bells, tenants, log });
  return {
    outgoing: new OutgoingEvents({ bells, log }),
    start: () => {
      worker.start();
      sweeper.start();
    },
    stopInOrder: [worker, sweeper, { name: 'event bells', stop: async () => bells.stop() }],
  };
}

/** Both have the whole grace: what a turn says before the end of it can still go out within it. */
function together(worker: TurnWorker, deliveries: { stop(graceMs: number): Promise<void> }): Running['stopInOrder'][number] {
  return {
    name: 'turn and delivery workers',
    stop: async (graceMs) => void (await Promise.all([worker.stop(graceMs), deliveries.stop(graceMs)])),
  };
}

/** What rings when something is to be sent. */
function wireDeliveries(redis: Redis, log: Log): OutgoingParts {
  const lanes = new DeliveryLanes(redis);
  const bells = new DeliveryBells({ redis, lanes, log });
  return { lanes, bells, outboxBell: async (lane) => bells.ring(lane) };
}

interface OutgoingParts {
  readonly lanes: DeliveryLanes;
  readonly bells: DeliveryBells;
  readonly outboxBell: OutboxBell;
}

interface DeliveryParts extends OutgoingParts {
  readonly redis: Redis;
  readonly tenants: Tenants;
  readonly events: OutgoingEvents;
  readonly registry: Registry;
  readonly log: Log;
}

/** Who sends, and who looks for what nobody was told of. */
function startableDeliveries(
  config: Config,
  { redis, tenants, events, registry, lanes, bells, log }: DeliveryParts,
): { start(): void; stop(graceMs: number): Promise<void> } {
  const told = tellDeliveries(events);
  const receipts = new DeliveryReceipts({ redis, told });
  const deliverer = new Deliverer({ providers: config, lanes, receipts, told, metrics: new DeliveryMetrics(registry), log });
  const deliverNext: DeliverNext = async (scope, lane, signal) => deliverer.deliverNext(scope, lane, signal);
  const worker = new DeliveryWorker({ redis, lanes, bells, tenants, concurrency: config.deliveryConcurrency, deliverNext, log });
  const sweeper = new DeliverySweeper({ redis, lanes, bells, tenants, log });
  return {
    start: () => {
      worker.start();
      sweeper.start();
    },
    stop: async (graceMs) => {
      await worker.stop(graceMs);
      await sweeper.stop();
    },
  };
}

interface CommandParts {
  readonly redis: Redis;
  readonly workerId: () => string;
  readonly log: Log;
}

/** What commands run in, and what clears away behind workers that were killed. */
async function wireCommands(
  { dataDir, sandbox }: Config,
  { redis, workerId, log }: CommandParts,
): Promise<Running & { readonly lend: Lenders['runtime']; readonly reaper: SandboxReaper }> {
  const folders = new RunFolders(dataDir, workerId);
  const deployment = await folders.deployment();
  const { image, runtime, hostDataDir } = sandbox;
  const dataFolder = hostDataDir === undefined ? undefined : { here: dataDir, onHost: hostDataDir };
  const makers = {
    docker: () => new DockerSandboxes({ deployment, image, runtime, dataFolder }),
    bubblewrap: () => new BubblewrapSandboxes({ deployment }),
  };
  const chosen = await chooseSandbox(sandbox, makers, log);
  const { sandboxes } = chosen;
  const liveness = new WorkerLiveness({ redis, ownId: workerId, now: () => performance.now() });
  const reaper = new SandboxReaper({ sandboxes, folders, liveness, log });
  const closing = sandboxes === undefined ? [] : [{ name: 'sandboxes', stop: async () => sandboxes.close() }];
  return {
    lend: (run) => new TurnRuntime({ chosen, folders, workerId, log }, run),
    reaper,
    stopInOrder: [reaper, { name: 'run folder', stop: async () => folders.removeOwn() }, ...closing],
  };
}

function openModels(providers: Providers, { metrics, log }: { readonly metrics: TurnMetrics; readonly log: Log }): Models {
  for (const facts of crowdedModels(providers)) log.warn(facts, 'the tools of the admin agent leave little of the window of this model');
  return new Models({
    providers,
    onFailedAttempt: (failure) => {
      metrics.modelFailed(failure.model, failure.kind);
      log.warn({ ...failure }, 'a model call failed');
    },
  });
}

/** What it costs is seen in the log. */
function openEmbeddings(
  embeddings: NonNullable<Providers['embeddings']>,
  { metrics, log }: { readonly metrics: TurnMetrics; readonly log: Log },
): Embeddings {
  return new Embeddings({
    embeddings,
    onFailedAttempt: (failure) => {
      metrics.modelFailed(failure.model, failure.kind);
      log.warn({ ...failure }, 'a call for embeddings failed');
    },
    onUsage: (usage) => log.info({ ...usage }, 'texts were embedded'),
  });
}
