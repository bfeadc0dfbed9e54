import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { eventually, freePort, temporaryDirectory } from '@concierge/testing';
import { ownEnvironment } from '../config.ts';
import { residentBytes } from '../process-figures.ts';
import { descendantsOf } from '../process-tree.ts';
import { absoluteRow, type Row } from '../row.ts';

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
  const seconds = await startOnce(folder.path, async (pid) => {
    await wait(SETTLE_MS);
    for (const child of descendantsOf(pid)) parts.set(nameOf(child.command), residentBytes(child.pid) / MEBIBYTE);
  });
  const all = [...parts.values()].reduce((sum, mebibytes) => sum + mebibytes, 0);
  return [
    absoluteRow({ measure: 'second `npm start` to ready', unit: 's', product: seconds }, { atMost: 4 }),
    ...[...parts].map(([name, product]) => absoluteRow({ measure: `idle memory of ${name}`, unit: 'MiB', product }, null)),
    absoluteRow({ measure: 'idle memory, together', unit: 'MiB', product: all }, { atMost: 450 }),
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

function nameOf(command: string): string {
  return (
    /services\/(?<service>\w+)\/src\/main\.ts/u.exec(command)?.groups?.['service'] ?? command.split(' ')[0]?.split('/').at(-1) ?? command
  );
}
