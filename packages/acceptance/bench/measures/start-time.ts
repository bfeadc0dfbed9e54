import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { eventually, freePort, temporaryDirectory } from '@concierge/testing';
import { ownEnvironment } from '../config.ts';
import { absoluteRow, type Row } from '../row.ts';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const READY_TIMEOUT_MS = 120_000;

/** From the command to a gateway that says it is ready; the first start of a data folder makes the demo tenant and is not counted. */
export async function measureStartTime(): Promise<Row[]> {
  await using folder = await temporaryDirectory();
  await startOnce(folder.path);
  const seconds = await startOnce(folder.path);
  return [absoluteRow({ measure: 'second `npm start` to ready', unit: 's', product: seconds }, { atMost: 4 })];
}

async function startOnce(dataDir: string): Promise<number> {
  const [port, uiPort] = [String(await freePort()), String(await freePort())];
  const startedMs = performance.now();
  const child = spawn(process.execPath, ['infra/start.mjs'], {
    cwd: root,
    env: { ...ownEnvironment(), DATA_DIR: dataDir, GATEWAY_PORT: port, UI_PORT: uiPort },
    stdio: 'ignore',
  });
  try {
    await eventually(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, { timeoutMs: READY_TIMEOUT_MS, everyMs: 20 });
    return (performance.now() - startedMs) / 1000;
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
