import type { Bench } from '../bench.ts';
import { startProduct, type Product } from '../contestants.ts';
import { collectGarbage } from '../garbage-collection.ts';
import { LoadDriver } from '../load/load-driver.ts';
import { paces } from '../model.ts';
import { residentBytes } from '../process-figures.ts';
import { absoluteRow, type Row } from '../row.ts';

const KIBIBYTE = 1024;
const steps = [1000, 5000] as const;

/** What an open event stream, of a turn that waits for the model, costs the gateway. */
export async function measureIdleStreams(bench: Bench): Promise<Row[]> {
  await using product = await startProduct(bench.model, { env: { NODE_OPTIONS: '--inspect-port=0' } });
  await using holder = await LoadDriver.start();
  await bench.full(product, { concurrency: 64, measureMs: 500, warmUpTurns: 1000 });
  await bench.model.setPace(paces.never);
  const rows: Row[] = [];
  const before = await settledBytes(product);
  let open = 0;
  for (const count of steps) {
    await holder.hold({ port: product.target.port, apiKeys: product.target.apiKeys, count: count - open });
    open = count;
    const each = ((await settledBytes(product)) - before) / count / KIBIBYTE;
    const bound = count === steps.at(-1) ? { atMost: 12 } : null;
    rows.push(
      absoluteRow({ measure: `gateway memory per idle stream, ${count.toLocaleString('en')} open`, unit: 'KiB', product: each }, bound),
    );
  }
  return rows;
}

async function settledBytes({ system, gatewayPid }: Product): Promise<number> {
  const [gateway] = system.gateways;
  if (gateway === undefined) throw new Error('there is no gateway');
  await collectGarbage(gateway, async () => system.logOf(gateway.name));
  return residentBytes(gatewayPid);
}
