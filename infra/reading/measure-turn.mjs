// One warm web turn with a tool call, in a gateway and a worker of their own, over data that is thrown away.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { probePort } from '../start/commands.mjs';
import { loadSecrets, openDataFolder } from '../start/data-folder.mjs';
import { demoKeys } from '../start/demo-tenant.mjs';
import { openProvidersFile } from '../start/providers.mjs';
import { startRedis } from '../start/redis.mjs';
import { childEnvironment } from '../start/services.mjs';
import { MeasuredService } from './measured-service.mjs';

const MESSAGE = 'Please read IDENTITY.md and introduce yourself.';
const WARM_TURNS = 2;
/** The turn is indexed and its lane released after `done`. */
const TAIL_MS = 2000;
const TURN_TIMEOUT_MS = 60_000;

/** Passes on only the variables that a start needs: no other Redis, database or provider. */
function ownEnvironment(dataFolder) {
  const inherited = Object.fromEntries(['PATH', 'HOME', 'TMPDIR'].map((name) => [name, process.env[name]]));
  return childEnvironment({ ...inherited, DATA_DIR: dataFolder, SANDBOX: 'off', LOG_LEVEL: 'warn', ...loadSecrets(dataFolder, {}) });
}

/** Asks the admin agent and reads the stream to its end. @throws Error unless a tool ran and the turn ended well */
async function askForTool(port, key) {
  const response = await fetch(`http://127.0.0.1:${port}/api/admin`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ message: MESSAGE }),
    signal: AbortSignal.timeout(TURN_TIMEOUT_MS),
  });
  const stream = await response.text();
  if (!stream.includes('event: tool_result') || !stream.includes('event: done')) throw new Error(`This is no turn with a tool:\n${stream}`);
}

async function measureServices(services, { port, key, idleMs }) {
  for (let turn = 0; turn < WARM_TURNS; turn += 1) await askForTool(port, key);
  await pause(TAIL_MS);
  const takeAll = async () => Promise.all(services.map((service) => service.takeCoverage()));
  await takeAll();
  await pause(idleMs);
  const idle = await takeAll();
  await askForTool(port, key);
  await pause(TAIL_MS);
  const turn = await takeAll();
  return services.map(({ name }, index) => ({ name, idle: idle[index], turn: turn[index] }));
}

/** Returns what V8 counted in gateway and worker while they were idle for `idleMs`, and in the turn after that. */
export async function measureTurn({ idleMs }) {
  const folder = mkdtempSync(join(tmpdir(), 'concierge-reading-'));
  const stops = [];
  try {
    const dataFolder = openDataFolder({ DATA_DIR: join(folder, 'data') });
    const env = ownEnvironment(dataFolder);
    const redis = await startRedis(dataFolder, env);
    stops.push(redis.stop);
    const port = await probePort(0, '127.0.0.1');
    const serviceEnv = { ...env, REDIS_URL: redis.url, PROVIDERS_FILE: openProvidersFile(dataFolder, env), GATEWAY_PORT: String(port) };
    const services = ['gateway', 'worker'].map((name) => new MeasuredService(name, { env: serviceEnv, folder: join(folder, name) }));
    stops.push(async () => Promise.all(services.map((service) => service.stop())));
    const [keys] = await Promise.all([demoKeys(dataFolder, serviceEnv), ...services.map((service) => service.ready())]);
    return await measureServices(services, { port, key: keys.admin, idleMs });
  } finally {
    for (const stop of stops.toReversed()) await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
