import { allTools } from '@concierge/agent';
import { limits } from '@concierge/contract';
import { announceProcess, openCore, type Core } from '@concierge/core';
import { openOutside, type Outside } from '@concierge/core/outside';
import type { Providers } from '@concierge/model';
import { Embeddings, Models, type FailedAttempt } from '@concierge/model/openai';
import {
  Figures,
  newMetrics,
  openConnection,
  openProcessFigures,
  readVersion,
  serveMetrics,
  SpanExporter,
  startPart,
  stopPart,
  type ServiceParts,
} from '@concierge/runtime';
import { BubblewrapSandboxes } from '@concierge/sandbox/bubblewrap';
import { DockerSandboxes } from '@concierge/sandbox/docker';
import {
  Cooldowns,
  DeliveryPace,
  DeliveryReceipts,
  DeliveryReconciler,
  DeliveryWorker,
  EventReconciler,
  EventWorker,
  HandoffReconciler,
  listTurnReconcilers,
  emitDeliveries,
  hearRecordChanges,
  TurnStreams,
  LogRecovery,
  TurnWorker,
  type OnRepaired,
  type WorkerReport,
} from '@concierge/turn';
import { UploadTexts } from '@concierge/upload';
import { DocumentReader, WebPages, WebSearch } from '@concierge/web';
import { WorkerRunDirectories } from './capabilities/runtime/worker-run-directories.ts';
import { SandboxReaper, WorkerLiveness } from './capabilities/runtime/sandbox-reaper.ts';
import { TurnRuntime } from './capabilities/runtime/turn-runtime.ts';
import { McpTools, type CapabilityFactories } from './capabilities/turn-capabilities.ts';
import { createSubagents } from './capabilities/subagents.ts';
import { createWeb } from './capabilities/web.ts';
import { openChannels } from './channels/channels.ts';
import { chooseSandbox } from './choose-sandbox.ts';
import { chooseProviders } from './choose-models.ts';
import type { Config } from './config.ts';
import { TurnSpans } from './trace/turn-spans.ts';
import { crowdedModels } from './turn/turn-agent.ts';
import { Deliverer } from './deliveries/deliverer.ts';
import { withModelFailpoint, withToolFailpoints } from './turn/prepare-turn.ts';
import { HandoffCommands } from './turn/handoff-commands.ts';
import { DeliveryMetrics, EventMetrics, listModels, TurnMetrics } from './metrics.ts';
import { channelFollowUp, emitTurnEnd } from './turn/publish-turn.ts';
import { TurnWarnings } from './turn/turn-warnings.ts';
import { TurnRunner } from './turn/turn-runner.ts';

type Registry = ReturnType<typeof newMetrics>;

/** What its functions build with. */
interface Building extends ServiceParts {
  readonly config: Config;
  readonly core: Core;
  readonly registry: Registry;
  readonly metrics: TurnMetrics;
  readonly onRepaired: OnRepaired;
}

/** Builds the whole service, in order, top to bottom; the stack closes it in the reverse order. */
export async function wire(config: Config, { stack, log }: ServiceParts): Promise<void> {
  const { providers, unusable, demo } = await chooseProviders(config, log);
  stack.use(demo);
  const workerId = TurnWorker.newId();
  const registry = newMetrics('worker');
  openProcessFigures(registry, config);
  let worker: TurnWorker | undefined;
  const metrics = new TurnMetrics(registry, () => worker?.running ?? 0, { known: listModels(providers), slots: config.concurrency });
  const embedder = openEmbedder(providers, metrics, { stack, log });
  const core = await openCore(config, stack, { role: 'worker', embedder, log });
  announceProcess({ service: 'worker', ...config }, core, { stack, log });
  const repairs = new Figures(registry).counter('concierge_reconciler_repairs_total');
  const onRepaired: OnRepaired = (kind, count) => {
    repairs.inc({ kind }, count);
  };
  const building: Building = { config, core, registry, metrics, onRepaired, stack, log };
  const { redis, tenants, queue, turns, events, handoffs, budgets } = core;
  const connect = (): ReturnType<typeof openConnection> => openConnection({ url: config.redisUrl, role: 'subscriber', log }, stack);
  const subscriber = connect();
  hearRecordChanges({ tenants, subscriber, log });
  const turnStreams = stack.adopt(new TurnStreams({ redis, subscriber, lanes: queue.lanes, log }), stopPart);
  const models = await openModels(providers, metrics, { core, subscriber: connect(), stack, log });
  const outside = openOutside({ outboundAllow: config.outboundAllow, mcpPolicy: { timeoutMs: limits.toolTimeoutMaxMs } }, stack);
  const { create, reaper, sandbox } = await openCommands(workerId, building);
  const requestStaff: CapabilityFactories['requestStaff'] = (run) => async (asked) => handoffs.desk.ask(run.scope, run.turn, asked);
  const isBreakable = config.failpoints !== '';
  const spans = openSpans(config, { stack, log });
  const runner = new TurnRunner({
    models: isBreakable ? withModelFailpoint(models) : models,
    tools: { builtIn: isBreakable ? withToolFailpoints(allTools) : allTools, attached: new McpTools({ servers: outside.mcpServers, log }) },
    capabilityFactories: {
      runtime: create,
      ...createReading(outside, building),
      ...createSubagents({ turns, streams: turnStreams }),
      requestStaff,
    },
    channels: { ...openChannels({ urls: config.providerUrls, log }), commands: new HandoffCommands(handoffs.desk) },
    budgets,
    followUps: [channelFollowUp(requestStaff), emitTurnEnd(events.outgoing)],
    warn: new TurnWarnings({ webhookEvents: events.outgoing, log }).report,
    metrics,
    spans,
    log,
  });
  if (config.metrics !== undefined) stack.use(await serveMetrics(registry, config.metrics));
  startPart(stack, reaper);
  startPart(stack, new HandoffReconciler({ redis, tenants, calls: handoffs.calls, log }));
  for (const part of listTurnReconcilers({ redis, ...queue, tenants, onRepaired, log })) startPart(stack, part);
  // Turns that are still running when it stops leave their events to other workers.
  startEvents(outside, building);
  const deliveryWorker = newDeliveryWorker(building);
  const { concurrency, tenantShare } = config;
  worker = new TurnWorker({
    redis,
    subscriber: connect(),
    queue,
    tenants,
    handlers: runner,
    onFenced: metrics.fenced,
    capacity: { concurrency, tenantShare },
    about: {
      id: workerId,
      version: readVersion().version,
      isDemo: demo !== undefined,
      report: { model: providers.default, unusableProviders: [...unusable], sandbox },
      counts: metrics.counts,
    },
    log,
  });
  const draining = [worker, deliveryWorker];
  // Both have the whole grace: what a turn emits before the end of it can still go out within it.
  stack.defer(async () => void (await Promise.all(draining.map(async (part) => part.stop(stack.graceLeftMs)))));
  await new LogRecovery({ redis, tenants, log }).recoverEarlierBoots();
  await worker.start();
  deliveryWorker.start();
}

/** Where OpenTelemetry is configured: what exports ended turns. */
function openSpans({ spans }: Config, { stack, log }: ServiceParts): TurnSpans | undefined {
  if (spans === undefined) return undefined;
  const { serviceName, ...rest } = spans;
  const exporter = new SpanExporter({ ...rest, resource: { 'service.name': serviceName }, log });
  startPart(stack, exporter);
  return new TurnSpans({ exporter, log });
}

/** Binds what reads for turns: web pages, the operator's own search, uploads. */
function createReading({ outbound }: Outside, { config, log }: Building): Pick<CapabilityFactories, 'web' | 'readUpload'> {
  // One reader for all: its slots count every document that this process reads.
  const documents = new DocumentReader();
  const search = config.webSearch === undefined ? undefined : new WebSearch(config.webSearch);
  const uploadTexts = new UploadTexts({ documents, log });
  return {
    web: createWeb({ pages: new WebPages(outbound, documents), search, log }),
    readUpload: (run) => async (upload, signal) => uploadTexts.read(run.scope, upload, signal),
  };
}

/** Starts what sends webhook events to tenants' own systems. */
function startEvents({ eventSender: sender }: Outside, { core, registry, onRepaired, stack, log }: Building): void {
  const { redis, tenants, events } = core;
  const metrics = new EventMetrics(registry);
  startPart(stack, new EventReconciler({ redis, queue: events.queue, tenants, onRepaired, log }));
  const onTried: EventMetrics['tried'] = (type, outcome) => {
    metrics.tried(type, outcome);
  };
  const worker = new EventWorker({ queue: events.queue, tenants, sender, onTried, log });
  stack.defer(async () => worker.stop(stack.graceLeftMs));
  worker.start();
}

/** Sends what is in the outboxes. Its reconciler finds forgotten deliveries. */
function newDeliveryWorker({ config, core, registry, onRepaired, stack, log }: Building): DeliveryWorker {
  const { redis, tenants, deliveries, events } = core;
  const { deliveryConcurrency: concurrency } = config;
  startPart(stack, new DeliveryReconciler({ redis, queue: deliveries, tenants, onRepaired, log }));
  const onReported = emitDeliveries(events.outgoing);
  const receipts = new DeliveryReceipts({ redis, onReported });
  const pace = new DeliveryPace(redis);
  const deliverer = new Deliverer({ providers: config, pace, receipts, onReported, metrics: new DeliveryMetrics(registry), log });
  return new DeliveryWorker({
    queue: deliveries,
    tenants,
    concurrency,
    deliverNext: async (scope, lane, signal) => deliverer.deliverNext(scope, lane, signal),
    log,
  });
}

/** Binds what runs commands, and what removes the leftovers of killed workers. */
async function openCommands(
  workerId: string,
  { config, core, metrics, stack, log }: Building,
): Promise<{
  readonly create: CapabilityFactories['runtime'];
  readonly reaper: SandboxReaper;
  readonly sandbox: NonNullable<WorkerReport['sandbox']>;
}> {
  const { image, runtime, hostDataDir } = config.sandbox;
  const { dataDir } = config;
  const ownId = (): string => workerId;
  const folders = new WorkerRunDirectories(dataDir, ownId);
  const deployment = await folders.deployment();
  const dataFolder = hostDataDir === undefined ? undefined : { here: dataDir, onHost: hostDataDir };
  const makers = {
    docker: () => new DockerSandboxes({ deployment, image, runtime, dataFolder }),
    bubblewrap: () => new BubblewrapSandboxes({ deployment }),
  };
  const chosen = await chooseSandbox(config.sandbox, makers, log);
  const { sandboxes, isUsable, reason } = chosen;
  stack.defer(async () => sandboxes?.close());
  stack.defer(async () => folders.removeOwn());
  const liveness = new WorkerLiveness({ redis: core.redis, ownId, now: () => performance.now() });
  return {
    create: (run, newDispatcher) =>
      new TurnRuntime({ chosen, folders, workerId: ownId, onStart: metrics.sandboxStarted, log }, run, newDispatcher),
    reaper: new SandboxReaper({ sandboxes, folders, liveness, log }),
    sandbox: { kind: sandboxes?.kind ?? 'off', isUsable, reason },
  };
}

/** What fails in one worker is not asked first by the others. */
async function openModels(
  providers: Providers,
  metrics: TurnMetrics,
  { core: { redis }, subscriber, stack, log }: Pick<Building, 'core' | 'stack' | 'log'> & { readonly subscriber: Core['redis'] },
): Promise<Models> {
  for (const facts of crowdedModels(providers)) log.warn(facts, 'the tools of the admin agent leave little of the window of this model');
  const health = new Cooldowns({ redis, subscriber, log });
  await health.start();
  const onFailedAttempt = noteFailed('a model call failed', metrics, log);
  return stack.adopt(new Models({ providers, onFailedAttempt, health }), (opened) => opened.close());
}

function openEmbedder({ embeddings }: Providers, metrics: TurnMetrics, { stack, log }: ServiceParts): Embeddings | undefined {
  if (embeddings === null) return undefined;
  const embedder = new Embeddings({
    embeddings,
    onFailedAttempt: noteFailed('a call for embeddings failed', metrics, log),
  });
  return stack.adopt(embedder, (opened) => opened.close());
}

function noteFailed(message: string, metrics: TurnMetrics, log: ServiceParts['log']): (failure: FailedAttempt) => void {
  return (failure) => {
    metrics.modelFailed(failure);
    if (failure.ownKey) log.info({ ...failure }, message);
    else log.warn({ ...failure }, message);
  };
}
