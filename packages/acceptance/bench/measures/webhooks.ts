import { System } from '@concierge/testing';
import { BenchProcess } from '../bench-process.ts';
import { percentile } from '../bench.ts';
import { sharedEnvironment } from '../config.ts';
import { LoadDriver } from '../load/load-driver.ts';
import type { WebhookResult, WebhookSpec } from '../load/webhook-load.ts';
import { absoluteRow, ratioRow, type Row } from '../row.ts';

const CONNECTIONS = 128;
const ROUNDS = 2;
const BURST = 20_000;
const TENANTS = 8;
const binding = { phoneNumberId: '106540352242922', accessToken: 'unused', verifyToken: 'unused', appSecret: 'bench-secret' };
const load = {
  phoneNumberId: binding.phoneNumberId,
  appSecret: binding.appSecret,
  connections: CONNECTIONS,
  peopleEach: 8,
  warmUpMs: 3000,
  measureMs: 4000,
  total: undefined,
};

type Target = Pick<WebhookSpec, 'port' | 'paths'>;

/**
 * How fast a gateway acknowledges messages that it has written down, beside an Express handler that does nothing. No worker runs meanwhile: what follows is
 * not measured here, and a burst comes faster than it is answered.
 */
export async function measureWebhooks(): Promise<Row[]> {
  await using parts = new AsyncDisposableStack();
  const driver = parts.use(await LoadDriver.start());
  const floor = parts.use(await BenchProcess.start('pipeline/webhook-main.ts', sharedEnvironment));
  const system = parts.use(await System.start({ modelUrl: 'http://127.0.0.1:9', env: { ...sharedEnvironment, NODE_ENV: 'production' } }));
  const empty: Target = { port: floor.port, paths: ['/webhook'] };
  const product: Target = { port: Number(new URL(system.url).port), paths: await bindTenants(system) };
  // The gateway is ready, which it is not without a worker.
  await Promise.all(system.workers.map(async (worker) => worker.kill()));
  const rounds: { readonly empty: WebhookResult; readonly product: WebhookResult }[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    rounds.push({ empty: await driver.webhooks({ ...load, ...empty }), product: await driver.webhooks({ ...load, ...product }) });
  }
  const burst = await driver.webhooks({ ...load, ...product, connections: 1000, peopleEach: 1, total: BURST });
  return [...rowsOf(together(rounds.map((round) => round.product)), together(rounds.map((round) => round.empty))), ...burstRows(burst)];
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

function rowsOf(product: WebhookResult, empty: WebhookResult): Row[] {
  const rate = ({ acknowledged, seconds }: WebhookResult): number => acknowledged / seconds;
  const measure = `webhooks, ${String(CONNECTIONS)} connections`;
  const acknowledged = { measure: `${measure}, acknowledged`, unit: '1/s', product: rate(product) };
  const at = (share: number) => ({ unit: 'ms', product: percentile(product.latencyMs, share) });
  return [
    absoluteRow(acknowledged, { atLeast: 2500 }),
    ratioRow(acknowledged, { name: 'empty Express', value: rate(empty) }, null),
    ratioRow({ measure: `${measure}, p50`, ...at(0.5) }, { name: 'empty Express', value: percentile(empty.latencyMs, 0.5) }, null),
    absoluteRow({ measure: `${measure}, p99`, ...at(0.99) }, { atMost: 60 }),
    absoluteRow({ measure: `${measure}, refused`, unit: '', product: product.refused }, { atMost: 0 }),
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
