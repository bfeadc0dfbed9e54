// The four services, from source, under this Node.
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../bootstrap.mjs';
import { probePort, until } from './commands.mjs';
import { SupervisedProcess } from './supervised-process.mjs';
import { StartError } from './terminal.mjs';

const READY_TIMEOUT_MS = 60_000;
const ASK_TIMEOUT_MS = 2000;
const ASK_EVERY_MS = 200;
/** Files are most of a worker's work, and each operation takes a thread of libuv's pool. */
const THREADS_PER_CORE = 4;
const MAX_THREADS = 32;

const preload = fileURLToPath(new URL('service-preload.mjs', import.meta.url));

/**
 * Flags of every Node that runs a service from source. What a turn allocates is gone when it ends: with 64 MB for young
 * objects instead of 16 V8 collects a quarter as often, and finds less that is still in use.
 */
export const nodeFlags = ['--conditions=@concierge/source', '--max-semi-space-size=64', '--import', preload];

export const serviceNames = ['gateway', 'worker', 'cron', 'ui'];

/** Where a service begins, from the repository's folder. */
export const buildMainPath = (name) => `services/${name}/src/main.ts`;

/** What every child gets: compiled code is kept between starts, or each start would strip the types again. */
export function childEnvironment(env) {
  return {
    ...env,
    // glibc otherwise keeps an arena of its own for every thread of the pool.
    MALLOC_ARENA_MAX: env.MALLOC_ARENA_MAX ?? '2',
    // Shown readable by the start script.
    LOG_PRETTY: 'false',
    NODE_COMPILE_CACHE: join(root, '.cache', 'compile'),
    UV_THREADPOOL_SIZE: env.UV_THREADPOOL_SIZE ?? String(Math.min(MAX_THREADS, availableParallelism() * THREADS_PER_CORE)),
  };
}

async function answers(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ASK_TIMEOUT_MS) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

export function readPorts(env) {
  return { gateway: Number(env.GATEWAY_PORT || 8000), ui: Number(env.UI_PORT || 8080) };
}

/** Refuses to start over a port that another process has. */
export async function assertPortsAreFree(ports) {
  const variables = { gateway: 'GATEWAY_PORT', ui: 'UI_PORT' };
  for (const [name, port] of Object.entries(ports)) {
    const free = await probePort(port).catch((error) => {
      throw new StartError(`Port ${port} (${name}) cannot be used: ${error.message}`);
    });
    if (free === null) throw new StartError(`Port ${port} is in use: stop what listens there, or set ${variables[name]} to another one.`);
  }
}

/** The services, not started yet. `flags`: further flags of Node, by service. */
export function createServices(ports, env, flags = {}) {
  const gatewayUrl = env.GATEWAY_URL ?? `http://127.0.0.1:${ports.gateway}`;
  const service = (name, extra = {}) =>
    new SupervisedProcess({
      name,
      command: process.execPath,
      args: [...nodeFlags, ...(flags[name] ?? []), buildMainPath(name)],
      env: { ...env, ...extra },
    });
  return {
    gateway: service('gateway', { GATEWAY_PORT: String(ports.gateway) }),
    worker: service('worker'),
    cron: service('cron'),
    ui: service('ui', { UI_PORT: String(ports.ui), GATEWAY_URL: gatewayUrl }),
  };
}

/** Resolves with the names of the services that are not ready when the time is over, or that keep failing. */
async function notReady(services, signal) {
  const isSettled = (child) => child.isReady || child.isFailing || child.state === 'stopped';
  await until(() => services.every(isSettled), { timeoutMs: READY_TIMEOUT_MS, signal });
  return services.filter((child) => !child.isReady).map((child) => child.name);
}

/**
 * Waits for all services, then for the gateway to say that it has everything it depends on. Resolves with what is
 * missing, by name.
 */
export async function waitUntilReady(services, ports, signal) {
  const late = await notReady(services, signal);
  if (late.includes('gateway') || late.includes('worker')) return late;
  const works = await until(() => answers(`http://127.0.0.1:${ports.gateway}/readyz`), {
    timeoutMs: READY_TIMEOUT_MS,
    everyMs: ASK_EVERY_MS,
    signal,
  });
  return works ? late : [...late, 'gateway (/readyz)'];
}
