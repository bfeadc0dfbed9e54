import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, System } from '@concierge/testing';
import { BenchProcess } from '../bench-process.ts';
import { percentile } from '../bench.ts';
import { sharedEnvironment } from '../config.ts';
import { LoadDriver } from '../load/load-driver.ts';
import type { WebhookResult, WebhookSpec } from '../load/webhook-load.ts';
import { absoluteRow, ratioRow, type Row } from '../row.ts';

const CONNECTIONS = 128;
const ROUNDS = 2;
const WARM_UP_MS = 10_000;
const BURST = 20_000;
const TENANTS = 8;
/** Beside a gateway of one process, over the same files and Redis. */
const PROCESSES = 2;
const PACED = { total: 8000, perSecond: 2000 };
/** A campaign is answered: contacts that never wrote before, each with ten messages. */
const CROWD = { people: 200, messages: 2000, perSecond: 500 };
const crowdLoad = { connections: CROWD.people, peopleEach: 1, newcomers: true, total: CROWD.messages, perSecond: CROWD.perSecond };
/** What a provider redelivers after an outage: messages of contacts that never wrote before, all in one delivery. */
const BACKLOG = { messages: 1000, people: 7, deliveries: 15 };
const backlogLoad = {
  connections: 1,
  peopleEach: BACKLOG.people,
  messagesEach: BACKLOG.messages,
  newcomers: true,
  total: BACKLOG.deliveries,
};
const binding = { phoneNumberId: '106540352242922', accessToken: 'unused', verifyToken: 'unused', appSecret: 'bench-secret' };
const load = {
  phoneNumberId: binding.phoneNumberId,
  appSecret: binding.appSecret,
  connections: CONNECTIONS,
  peopleEach: 8,
  messagesEach: 1,
  warmUpMs: 3000,
  measureMs: 4000,
  total: undefined,
  perSecond: undefined,
  newcomers: false,
};

type Target = Pick<WebhookSpec, 'port' | 'paths'>;
type Round = Readonly<Record<'empty' | 'kept' | 'product' | 'processes', WebhookResult>>;

/**
 * How fast a gateway acknowledges messages that it has written down, beside Express handlers that do nothing, and
 * nothing but write down. No worker runs meanwhile: what follows is not measured here, and a burst comes faster than it
 * is answered.
 */
export async function measureWebhooks(): Promise<Row[]> {
  await using parts = new AsyncDisposableStack();
  const driver = parts.use(await LoadDriver.start());
  const floor = await startFloor(parts);
  const env = { ...sharedEnvironment, NODE_ENV: 'production' };
  const envFor = (name: string): Record<string, string> => (name === 'gateway-1' ? { GATEWAY_PROCESSES: String(PROCESSES) } : {});
  const system = parts.use(await System.start({ modelUrl: 'http://127.0.0.1:9', gateways: 2, redisSyncs: true, env, envFor }));
  await allServe(system.gatewayUrls[1] ?? '');
  const paths = await bindTenants(system);
  const [product = { port: 0, paths }, processes = product] = system.gatewayUrls.map((url) => ({ port: Number(new URL(url).port), paths }));
  const targets = { ...floor, product, processes };
  // The gateway is ready, which it is not without a worker.
  await Promise.all(system.workers.map(async (worker) => worker.kill()));
  // Cold code is slow, and not equally slow: a gateway's first ten thousand take half as long again.
  for (const target of Object.values(targets)) await driver.webhooks({ ...load, ...target, measureMs: WARM_UP_MS });
  const rounds: Round[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const empty = await driver.webhooks({ ...load, ...targets.empty });
    const kept = await driver.webhooks({ ...load, ...targets.kept });
    const one = await driver.webhooks({ ...load, ...targets.product });
    rounds.push({ empty, kept, product: one, processes: await driver.webhooks({ ...load, ...targets.processes }) });
  }
  const paced = await driver.webhooks({ ...load, ...targets.processes, ...PACED });
  const crowd = await driver.webhooks({ ...load, ...targets.product, ...crowdLoad });
  const backlog = await driver.webhooks({ ...load, ...targets.product, ...backlogLoad });
  const burst = await driver.webhooks({ ...load, ...targets.product, connections: 1000, peopleEach: 1, total: BURST });
  return [...toRows(rounds), ...pacedRows(paced), ...crowdRows(crowd), ...backlogRows(backlog), ...burstRows(burst)];
}

async function startFloor(parts: AsyncDisposableStack): Promise<Record<'empty' | 'kept', Target>> {
  const folder = await mkdtemp(join(tmpdir(), 'concierge-webhooks-'));
  parts.defer(async () => rm(folder, { recursive: true, force: true }));
  const tenants = Array.from({ length: TENANTS }, (_, tenant) => `bench-${String(tenant)}`);
  for (const tenant of tenants) await mkdir(join(folder, tenant));
  const { port } = parts.use(await BenchProcess.start('pipeline/webhook-main.ts', { ...sharedEnvironment, WEBHOOKS_FOLDER: folder }));
  return { empty: { port, paths: ['/empty'] }, kept: { port, paths: tenants.map((tenant) => `/kept/${tenant}`) } };
}

/** Connections are kept: those of a load would all be of the process that serves first. */
async function allServe(url: string): Promise<void> {
  await eventually(async () =>
    (await (await fetch(`${url}/metrics`)).text()).includes(`concierge_gateway_processes{service="gateway"} ${String(PROCESSES)}`),
  );
}

async function bindTenants(system: System): Promise<string[]> {
  const paths: string[] = [];
  for (let tenant = 0; tenant < TENANTS; tenant += 1) {
    const id = `bench-${String(tenant)}`;
    await system.createTenant(id);
    await (await system.scope(id)).channels.connect('channel_a', binding);
    paths.push(`/webhook/whatsapp/${id}`);
  }
  return paths;
}

function together(results: readonly WebhookResult[]): WebhookResult {
  const sum = (of: (result: WebhookResult) => number): number => results.reduce((total, result) => total + of(result), 0);
  return {
    acknowledged: sum((result) => result.acknowledged),
    seconds: sum((result) => result.seconds),
    latencyMs: results.flatMap((result) => result.latencyMs).toSorted((one, other) => one - other),
    refused: sum((result) => result.refused),
    firstRefusal: results.find((result) => result.firstRefusal !== null)?.firstRefusal ?? null,
  };
}

function toRows(rounds: readonly Round[]): Row[] {
  const of = (who: keyof Round): WebhookResult => together(rounds.map((round) => round[who]));
  const [product, processes, empty, kept] = [of('product'), of('processes'), of('empty'), of('kept')];
  const rate = ({ acknowledged, seconds }: WebhookResult): number => acknowledged / seconds;
  const measure = `webhooks, ${String(CONNECTIONS)} connections`;
  const ofProcesses = `${measure}, ${String(PROCESSES)} processes`;
  const acknowledged = { measure: `${measure}, acknowledged`, unit: '1/s', product: rate(product) };
  const slowest = { measure: `${measure}, p99`, unit: 'ms', product: percentile(product.latencyMs, 0.99) };
  const median = { measure: `${measure}, p50`, unit: 'ms', product: percentile(product.latencyMs, 0.5) };
  const [emptyName, keptName] = ['empty Express', 'Express, one file'];
  return [
    absoluteRow(acknowledged, { atLeast: 2500 }),
    ratioRow(acknowledged, { name: emptyName, value: rate(empty) }, null),
    ratioRow(acknowledged, { name: keptName, value: rate(kept) }, null),
    ratioRow(median, { name: emptyName, value: percentile(empty.latencyMs, 0.5) }, null),
    ratioRow(median, { name: keptName, value: percentile(kept.latencyMs, 0.5) }, null),
    absoluteRow(slowest, { atMost: 60 }),
    ratioRow(slowest, { name: keptName, value: percentile(kept.latencyMs, 0.99) }, null),
    absoluteRow({ measure: `${measure}, refused`, unit: '', product: product.refused }, { atMost: 0 }),
    absoluteRow({ ...acknowledged, measure: `${ofProcesses}, acknowledged`, product: rate(processes) }, { atLeast: 3000 }),
    ratioRow(
      { ...acknowledged, measure: `${ofProcesses}, acknowledged`, product: rate(processes) },
      { name: 'one process', value: rate(product) },
      null,
    ),
    absoluteRow({ measure: `${ofProcesses}, refused`, unit: '', product: processes.refused }, { atMost: 0 }),
  ];
}

function pacedRows(paced: WebhookResult): Row[] {
  const measure = `webhooks, ${String(PROCESSES)} processes, ${PACED.perSecond.toLocaleString('en')} a second`;
  return [
    absoluteRow({ measure: `${measure}, p99`, unit: 'ms', product: percentile(paced.latencyMs, 0.99) }, { atMost: 60 }),
    absoluteRow({ measure: `${measure}, refused`, unit: '', product: paced.refused }, { atMost: 0 }),
  ];
}

function crowdRows(crowd: WebhookResult): Row[] {
  const measure = `${CROWD.messages.toLocaleString('en')} webhooks of ${String(CROWD.people)} newcomers, ${String(CROWD.perSecond)} a second`;
  const at = (share: number) => ({ unit: 'ms', product: percentile(crowd.latencyMs, share) });
  return [
    absoluteRow({ measure: `${measure}, p50`, ...at(0.5) }, { atMost: 50 }),
    absoluteRow({ measure: `${measure}, p99`, ...at(0.99) }, null),
    absoluteRow({ measure: `${measure}, refused`, unit: '', product: crowd.refused }, { atMost: 0 }),
  ];
}

function backlogRows(backlog: WebhookResult): Row[] {
  const measure = `a webhook of ${BACKLOG.messages.toLocaleString('en')} messages from ${String(BACKLOG.people)} people`;
  const at = (share: number) => ({ unit: 'ms', product: percentile(backlog.latencyMs, share) });
  return [
    absoluteRow({ measure: `${measure}, p50`, ...at(0.5) }, { atMost: 250 }),
    absoluteRow({ measure: `${measure}, p99`, ...at(0.99) }, null),
    absoluteRow({ measure: `${measure}, refused`, unit: '', product: backlog.refused }, { atMost: 0 }),
  ];
}

function burstRows(burst: WebhookResult): Row[] {
  if (burst.firstRefusal !== null) process.stderr.write(`the first refusal of the burst: ${burst.firstRefusal}\n`);
  const measure = `burst of ${BURST.toLocaleString('en')} webhooks`;
  return [
    absoluteRow({ measure: `${measure}, refused`, unit: '', product: burst.refused }, { atMost: 0 }),
    absoluteRow({ measure: `${measure}, until the last answer`, unit: 's', product: burst.seconds }, null),
  ];
}
