// `npm start`, top to bottom. Stopped in the opposite order: services first, Redis last.
import { join } from 'node:path';
import { root, whenNpmIsGone } from '../bootstrap.mjs';
import { loadEnvironmentFile } from '../environment-file.mjs';
import { printBanner } from './banner.mjs';
import { checkConfiguration, embeddedRedis, isGiven } from './configuration.mjs';
import { claimDataFolder, loadSecrets, openDataFolder } from './data-folder.mjs';
import { demoKeys, renewRefused } from './demo-tenant.mjs';
import { describeModel, openProvidersFile } from './providers.mjs';
import { startRedis } from './redis.mjs';
import { BackgroundBuild } from './sandbox-image.mjs';
import { chooseSandbox } from './sandbox.mjs';
import { assertPortsAreFree, childEnvironment, createServices, readPorts, waitUntilReady } from './services.mjs';
import { complain, say, StartError } from './terminal.mjs';
import { buildUi, buildWidget } from './ui-build.mjs';

const DEFAULT_GRACE_S = 25;
/** Beyond the grace, what a service needs to close its connections. */
const CLOSE_MARGIN_MS = 16_000;
/** A Ctrl-C arrives several times (terminal, npm, wrapper): what comes within this is one. */
const SAME_SIGNAL_MS = 1000;

/** What has to be stopped, in the order in which it was started. */
class RunningSystem {
  #parts = [];
  #stopping;
  #askedAtMs = 0;
  #graceMs;
  #asked = new AbortController();

  constructor(graceMs) {
    this.#graceMs = graceMs;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => this.#onSignal());
    whenNpmIsGone(() => this.#begin());
    // The reader of our output is gone (`npm start | head`): treated as a closed terminal.
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => this.#begin());
  }

  /** Aborted when the user at the terminal stops it. */
  get asked() {
    return this.#asked.signal;
  }

  add(part) {
    this.#parts.push(part);
  }

  stop() {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  #begin() {
    if (this.#askedAtMs !== 0) return;
    this.#askedAtMs = Date.now();
    this.#asked.abort();
    say('\nStopping: running turns may finish. Ctrl-C again ends everything at once.');
    void this.stop().then((clean) => {
      say(clean ? 'Stopped.' : 'Stopped, but not everything ended by itself.');
      process.exit(clean ? 0 : 1);
    });
  }

  #onSignal() {
    if (this.#askedAtMs === 0) return this.#begin();
    if (Date.now() - this.#askedAtMs < SAME_SIGNAL_MS) return;
    complain('Ending everything at once.');
    for (const part of this.#parts) part.kill();
    process.exit(1);
  }

  async #stopAll() {
    let clean = true;
    for (const part of this.#parts.toReversed()) {
      const stopped = await part.stop(this.#graceMs).catch((error) => {
        complain(error.message);
        return false;
      });
      clean = clean && stopped !== false;
    }
    return clean;
  }
}

const asPart = (children) => ({
  stop: async (graceMs) => (await Promise.all(children.map((child) => child.stop(graceMs + CLOSE_MARGIN_MS)))).every(Boolean),
  kill: () => children.forEach((child) => child.kill()),
});

/** What the services cannot start without. */
async function prepare(system, env, dataFolder) {
  const release = claimDataFolder(dataFolder);
  system.add({ stop: async () => release(), kill: release });
  const providersFile = openProvidersFile(dataFolder, env);
  const [redis, sandbox] = await Promise.all([startRedis(dataFolder, env), chooseSandbox(env)]);
  if (redis.child !== null) system.add({ stop: redis.stop, kill: () => redis.child.kill() });
  const ownRedis = redis.child === null ? {} : embeddedRedis(redis.url);
  return { redis, sandbox, childEnv: { ...env, ...ownRedis, PROVIDERS_FILE: providersFile, ...sandbox.settings } };
}

/**
 * The services, and beside them what only a first start has to make: the demo tenant, the console's pages and the web
 * widget.
 */
async function launch(system, { ports, dataFolder, childEnv, flags }) {
  const { ui, ...others } = createServices(ports, childEnv, flags);
  const services = [...Object.values(others), ui];
  system.add(asPart(services));
  for (const service of Object.values(others)) service.start();
  const pages = buildUi(childEnv).then(() => {
    if (!system.asked.aborted) ui.start();
  });
  const [stored] = await Promise.all([demoKeys(dataFolder, childEnv), pages, buildWidget(childEnv)]);
  const late = await waitUntilReady(services, ports, system.asked);
  const keys = await renewRefused(stored, { port: ports.gateway, dataFolder, env: childEnv });
  return { services: { ...others, ui }, keys, late };
}

function buildImageFor(system, dataFolder) {
  const build = new BackgroundBuild(dataFolder);
  system.add(build);
  build.start();
}

async function startEverything(system, { startedAt, graceMs, flags, onReady }) {
  const { isDemo } = await checkConfiguration(process.env);
  const ports = readPorts(process.env);
  await assertPortsAreFree(ports);
  const dataFolder = openDataFolder(process.env);
  const env = childEnvironment({ ...process.env, DATA_DIR: dataFolder, ...loadSecrets(dataFolder, process.env) });
  const { redis, sandbox, childEnv } = await prepare(system, env, dataFolder);
  if (system.asked.aborted) return;
  const { services, keys, late } = await launch(system, { ports, dataFolder, childEnv, flags });
  if (system.asked.aborted) return;
  const backends = {
    Redis: redis.description,
    Index: isGiven(process.env, 'DATABASE_URL') ? 'PostgreSQL (DATABASE_URL)' : `SQLite, ${join(dataFolder, 'index')}`,
    Files: join(dataFolder, 'tenants'),
    Sandbox: sandbox.description,
    Model: describeModel(childEnv.PROVIDERS_FILE, isDemo),
  };
  printBanner({ ports, seconds: ((Date.now() - startedAt) / 1000).toFixed(1), backends, keys, late });
  // Not before: it takes a core for a minute, and nothing of this start waits for it.
  if (sandbox.buildsImage) buildImageFor(system, dataFolder);
  for (const part of onReady?.({ services, env: childEnv, graceMs: graceMs + CLOSE_MARGIN_MS }) ?? []) system.add(part);
}

/**
 * Starts the system and leaves it running until a signal stops it. Expects the repository as the working directory.
 * `flags`: further flags of Node, by service. `onReady({ services, env, graceMs })` is called once everything runs; the
 * parts that it returns are stopped before the services.
 */
export async function startSystem({ flags, onReady } = {}) {
  const startedAt = Date.now();
  say(`Concierge, Node ${process.versions.node}, from ${root}`);
  try {
    loadEnvironmentFile();
  } catch (error) {
    complain(error.message);
    process.exit(1);
  }
  // A value that is no number is refused before anything that has to be stopped is started.
  const graceMs = (Number(process.env.SHUTDOWN_GRACE_S || DEFAULT_GRACE_S) || 0) * 1000;
  const system = new RunningSystem(graceMs);
  try {
    await startEverything(system, { startedAt, graceMs, flags, onReady });
  } catch (error) {
    if (system.asked.aborted) return;
    complain(error instanceof StartError ? error.message : error.stack);
    await system.stop();
    process.exit(1);
  }
}
