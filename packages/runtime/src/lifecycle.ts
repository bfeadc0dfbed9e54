import { ConfigError } from './config.ts';
import { createLog, type Log } from './log.ts';
import { startWatchdog } from './watchdog.ts';

/** Something with a connection, a timer or a child process. `stop` resolves when nothing of it is left. */
export interface Stoppable {
  readonly name: string;
  stop(graceMs: number): Promise<void>;
}

export interface Running {
  /** Stopped one after another, in this order. */
  readonly stopInOrder: readonly Stoppable[];
}

export interface ServiceOptions {
  readonly log: Log;
  /** How long running work may take to finish after SIGTERM. */
  readonly graceMs: number;
  readonly wire: () => Promise<Running>;
}

/** Beyond the grace, the time a service has to close its connections before it is ended anyway. */
const CLOSE_MARGIN_MS = 5000;

async function stopAll(running: Running, { log, graceMs }: ServiceOptions): Promise<boolean> {
  let clean = true;
  const until = Date.now() + graceMs;
  for (const part of running.stopInOrder) {
    try {
      await part.stop(Math.max(0, until - Date.now()));
    } catch (error) {
      clean = false;
      log.error({ err: error, part: part.name }, 'did not stop cleanly');
    }
  }
  return clean;
}

/** Runs one service until SIGTERM or SIGINT, then stops it in order and exits 0; a second signal ends it at once. */
export async function runService(options: ServiceOptions): Promise<void> {
  const { log, graceMs } = options;
  process.on('unhandledRejection', (error) => {
    log.error({ err: error }, 'unhandled rejection');
  });
  const running = await options.wire().catch((error: unknown) => {
    if (error instanceof ConfigError) log.fatal(error.message);
    else log.fatal({ err: error }, 'cannot start');
    process.exit(1);
  });
  // For whoever started this process with a channel to hear it on (`npm start`, tests).
  process.send?.({ ready: true });
  log.info('ready');
  let stopping = false;
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info({ signal }, 'stopping');
    const deadline = setTimeout(() => {
      log.error('did not stop in time');
      process.exit(1);
    }, graceMs + CLOSE_MARGIN_MS);
    const clean = await stopAll(running, options);
    clearTimeout(deadline);
    log.info('stopped');
    process.exit(clean ? 0 : 1);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, (name) => void stop(name));
}

/** What every service's configuration holds. */
interface ServiceConfig {
  readonly logLevel: string;
  readonly prettyLog: boolean;
  readonly graceMs: number;
}

export interface StartOptions<Config extends ServiceConfig> {
  readonly name: string;
  /** @throws ConfigError */
  readonly readConfig: () => Config;
  readonly wire: (config: Config, log: Log) => Promise<Running>;
}

/** The whole of a service's main.ts: configuration, log, graph, and its end. A bad configuration is printed line by line. */
export async function startService<Config extends ServiceConfig>({ name, readConfig, wire }: StartOptions<Config>): Promise<void> {
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${name}: ${error.message}\n`);
    process.exit(1);
  }
  const log = createLog({ service: name, level: config.logLevel, pretty: config.prettyLog });
  startWatchdog(name, log);
  await runService({ log, graceMs: config.graceMs, wire: async () => await wire(config, log) });
}
