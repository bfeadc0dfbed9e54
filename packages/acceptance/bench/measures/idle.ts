import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { eventually, freePort, temporaryDirectory } from '@concierge/testing';
import { ownEnvironment } from '../config.ts';
import { residentBytes, listDescendants, collectGarbage, proportionalBytes } from '../process-figures.ts';
import { absoluteRow, type Row } from '../row.ts';
import type { Bench } from '../bench.ts';
import { startProduct, type Product } from '../contestants.ts';
import { LoadDriver } from '../load/load-driver.ts';
import { paces } from '../model.ts';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const READY_TIMEOUT_MS = 120_000;
const SETTLE_MS = 5000;
const MEBIBYTE = 1024 * 1024;

/**
 * `npm start` over a data folder that has been used before: the time to ready, and the memory of everything it starts.
 */
export async function measureIdleStart(): Promise<Row[]> {
  await using folder = await temporaryDirectory();
  await startOnce(folder.path, async () => Promise.resolve());
  const parts = new Map<string, number>();
  let proportional = 0;
  const seconds = await startOnce(folder.path, async (pid) => {
    await wait(SETTLE_MS);
    for (const child of listDescendants(pid)) {
      parts.set(readName(child.command), residentBytes(child.pid) / MEBIBYTE);
      proportional += proportionalBytes(child.pid) / MEBIBYTE;
    }
  });
  const all = [...parts.values()].reduce((sum, mebibytes) => sum + mebibytes, 0);
  return [
    absoluteRow({ measure: 'second `npm start` to ready', unit: 's', product: seconds }, { atMost: 4 }),
    ...[...parts].map(([name, product]) => absoluteRow({ measure: `idle memory of ${name}`, unit: 'MiB', product }, null)),
    absoluteRow({ measure: 'idle memory, together', unit: 'MiB', product: all }, { atMost: 450 }),
    absoluteRow({ measure: 'the same, shared pages counted once', unit: 'MiB', product: proportional }, null),
  ];
}

/** @returns seconds from the command to a gateway that reports ready */
async function startOnce(dataDir: string, whenReady: (pid: number) => Promise<void>): Promise<number> {
  const [port, uiPort] = [String(await freePort()), String(await freePort())];
  const env = { ...ownEnvironment(), DATA_DIR: dataDir, GATEWAY_PORT: port, UI_PORT: uiPort };
  const startedMs = performance.now();
  const child = spawn(process.execPath, ['infra/start.mjs'], { cwd: root, env, stdio: 'ignore' });
  try {
    await eventually(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, { timeoutMs: READY_TIMEOUT_MS, everyMs: 20 });
    const seconds = (performance.now() - startedMs) / 1000;
    await whenReady(child.pid ?? 0);
    return seconds;
  } finally {
    await stop(child);
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGINT');
  await exited;
}

function readName(command: string): string {
  return (
    /services\/(?<service>\w+)\/src\/main\.ts/u.exec(command)?.groups?.['service'] ?? command.split(' ')[0]?.split('/').at(-1) ?? command
  );
}

const KIBIBYTE = 1024;
/** A turn that is not answered gets its inbox file after some seconds, and leaves the gateway's memory then. */
const REST_MS = 15_000;
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
    await holder.hold({ port: Number(new URL(product.system.url).port), apiKeys: product.target.apiKeys, count: count - open });
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
  await wait(REST_MS);
  const [gateway] = system.gateways;
  if (gateway === undefined) throw new Error('there is no gateway');
  await collectGarbage(gateway, async () => system.readServiceLog(gateway.name));
  return residentBytes(gatewayPid);
}
