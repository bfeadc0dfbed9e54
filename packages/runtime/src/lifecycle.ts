import cluster from 'node:cluster';
import { flushCompileCache } from 'node:module';
import type { ProcessSettings } from './config.ts';
import { ConfigError } from './environment.ts';
import { createLog, type Log } from './log.ts';
import { readVersion } from './version.ts';
import { startWatchdog } from './watchdog/watchdog.ts';

/** The open resources of one service. They are closed in the reverse of the order in which they were opened. */
export class ServiceStack extends AsyncDisposableStack {
  #graceEndsAtMs = 0;

  /** The rest of the grace for a part that drains. 0 when a start failed: there is no work yet that could end. */
  get graceLeftMs(): number {
    return Math.max(0, this.#graceEndsAtMs - Date.now());
  }

  /** Closes everything, one part after another. Rejects, after the last, with what did not close cleanly. */
  async stop(graceMs: number): Promise<void> {
    this.#graceEndsAtMs = Date.now() + graceMs;
    await this.disposeAsync();
  }
}

/** For `stack.adopt`. */
export async function stopPart(part: { stop(): Promise<void> }): Promise<void> {
  await part.stop();
}

/** Starts a part that works by itself; the stack stops it. */
export function startPart(stack: AsyncDisposableStack, part: { start(): void; stop(): Promise<void> }): void {
  stack.adopt(part, stopPart);
  part.start();
}

export interface ServiceOptions {
  readonly log: Log;
  /** How long running work may take to finish after SIGTERM. */
  readonly graceMs: number;
  /** Opens everything on the stack. When it rejects, what it has opened is closed. */
  readonly wire: (stack: ServiceStack) => Promise<unknown>;
}

/**
 * Beyond the grace, the time a service has to close its connections before it is ended anyway: time in which it ran.
 * One that stood still, or whose machine did, has closed nothing meanwhile. A worker ends its sandboxes in it, whose
 * engine takes seconds for that on a busy machine; one that is cut off leaves them, and its turns, to others.
 */
const CLOSE_MARGIN_MS = 15_000;
const DEADLINE_PART_MS = 500;

/** Calls `end` after so much time; a part of it that took longer counts as one. @returns what is cleared in the end */
function endAfter(ms: number, end: () => void): NodeJS.Timeout {
  let partsLeft = Math.ceil(ms / DEADLINE_PART_MS);
  const parts = setInterval(() => {
    partsLeft -= 1;
    if (partsLeft > 0) return;
    clearInterval(parts);
    end();
  }, DEADLINE_PART_MS);
  return parts;
}

/** @returns whether all of it closed cleanly. Ends the process when that takes too long. */
async function stopInTime(stack: ServiceStack, graceMs: number, log: Log): Promise<boolean> {
  const deadline = endAfter(graceMs + CLOSE_MARGIN_MS, () => {
    log.error('did not stop in time');
    process.exit(1);
  });
  try {
    await stack.stop(graceMs);
    return true;
  } catch (error) {
    for (const err of toFailures(error)) log.error({ err }, 'did not stop cleanly');
    return false;
  } finally {
    clearInterval(deadline);
  }
}

/** The failures of all parts, in the order in which they were closed. */
function toFailures(error: unknown): unknown[] {
  return error instanceof SuppressedError ? [...toFailures(error.suppressed), error.error] : [error];
}

/**
 * Runs one service until SIGTERM or SIGINT, or until its primary stops it, then stops it and exits 0; a second signal
 * ends it at once. When it cannot start, what it has opened is closed and it exits 1.
 */
export async function runService({ log, graceMs, wire }: ServiceOptions): Promise<void> {
  process.on('unhandledRejection', (error) => {
    log.error({ err: error }, 'unhandled rejection');
  });
  const stack = new ServiceStack();
  await wire(stack).catch(async (error: unknown) => {
    if (error instanceof ConfigError) log.fatal(error.message);
    else log.fatal({ err: error }, 'cannot start');
    await stopInTime(stack, 0, log);
    process.exit(1);
  });
  let stopping = false;
  const stop = async (reason: object): Promise<void> => {
    if (stopping) return;
    stopping = true;
    log.info(reason, 'stopping');
    const clean = await stopInTime(stack, graceMs, log);
    log.info('stopped');
    process.exit(clean ? 0 : 1);
  };
  let signals = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    signals += 1;
    if (signals > 1) process.exit(1);
    void stop({ signal });
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, onSignal);
  followPrimary(stop);
  // Last, as who hears of it may stop the process at once. For the parent of this process when it opened a channel
  // (`npm start`, a primary, tests).
  process.send?.({ ready: true });
  log.info('ready');
}

/** What a primary sends to its processes so that they stop. */
export const stopMessage = { stop: true } as const;

/**
 * One process of several stops with its primary. Not by a signal: a terminal and a service manager signal all processes
 * of a group, and a second signal means "at once".
 */
function followPrimary(stop: (reason: object) => Promise<void>): void {
  const { worker } = cluster;
  worker?.on('message', (message: object) => {
    if ('stop' in message) void stop({ by: 'primary' });
  });
  worker?.on('disconnect', () => {
    // Without this, Node ends the process at once, and its open streams with it.
    worker.exitedAfterDisconnect = true;
    void stop({ by: 'the end of the primary' });
  });
}

/** The arguments that a service is built with. */
export interface ServiceParts {
  readonly stack: ServiceStack;
  readonly log: Log;
}

/** The settings that the life of a service depends on. */
type LifeSettings = ProcessSettings & {
  /** Processes that serve together; one when left out. */
  readonly processes?: number;
};

type Wire<Config> = (config: Config, parts: ServiceParts) => Promise<unknown>;

export interface StartOptions<Config extends LifeSettings> {
  readonly name: string;
  /** @throws ConfigError */
  readonly readConfig: () => Config;
  /** Loads what builds the service, so that a process loads no more than it runs. */
  readonly load: (config: Config) => Wire<Config> | Promise<Wire<Config>>;
}

/**
 * The whole of a service's main.ts: configuration, log, graph, and its end. A bad configuration is printed line by
 * line.
 */
export async function startService<Config extends LifeSettings>({ name, readConfig, load }: StartOptions<Config>): Promise<void> {
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${name}: ${error.message}\n`);
    process.exit(1);
  }
  const isOneOfSeveral = config.processes !== undefined && config.processes > 1;
  const log = createLog({ service: name, level: config.logLevel, pretty: config.prettyLog, isOneOfSeveral });
  log.info({ ...readVersion(), node: process.versions.node }, 'starting');
  const wire = await load(config);
  // Not at the exit: a service that is killed would leave the next start nothing of what it has compiled. And before
  // the watchdog starts: the first start after an installation writes a few thousand files, which stops a busy machine
  // for longer than an event loop may hang.
  flushCompileCache();
  startWatchdog(name, log);
  await runService({ log, graceMs: config.graceMs, wire: async (stack) => wire(config, { stack, log }) });
}
