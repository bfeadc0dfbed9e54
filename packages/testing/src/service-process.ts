import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const root = fileURLToPath(new URL('../../../', import.meta.url));

export interface ServiceOptions {
  readonly name: string;
  /** Path from the repository's root, such as `services/worker/src/main.ts`. */
  readonly entry: string;
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** Another checkout, from whose sources it runs; this one when left out. */
  readonly tree?: string | undefined;
}

/** How Node runs a file of a checkout from source. */
export const sourceFlags: readonly string[] = ['--conditions=@concierge/source', '--disable-warning=ExperimentalWarning'];

/** As services are started (infra/start/services.mjs). */
export const serviceFlags: readonly string[] = [...sourceFlags, '--max-semi-space-size=64'];

/** What each service logs once it serves. */
const readyLine = '"msg":"ready"';

/** One service of the system in a process of its own, as it ships: started, stopped, frozen and killed by tests. */
export class ServiceProcess {
  readonly name: string;
  /** The checkout from whose sources the next start runs; this one when undefined. */
  tree: string | undefined;
  readonly #options: ServiceOptions;
  readonly #log: WriteStream;
  #child: ChildProcess | undefined;
  #isReady = false;

  constructor(options: ServiceOptions) {
    this.name = options.name;
    this.tree = options.tree;
    this.#options = options;
    this.#log = createWriteStream(options.logFile, { flags: 'a' });
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get alive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The signal that ended it; null while it runs and when it ended by itself. */
  get endedBy(): NodeJS.Signals | null {
    return this.#child?.signalCode ?? null;
  }

  /** Whether it has reported ready since it was started last. */
  get isReady(): boolean {
    return this.#isReady && this.alive;
  }

  start(extraEnv: Readonly<Record<string, string>> = {}): void {
    const { entry, env } = this.#options;
    const tree = this.tree ?? root;
    // Compiled once for all starts of a checkout, as under `npm start`.
    const cache = { NODE_COMPILE_CACHE: join(tree, '.cache', 'compile') };
    const child = spawn(process.execPath, [...serviceFlags, entry], {
      cwd: tree,
      env: { PATH: systemPath, NODE_ENV: 'test', ...cache, ...env, ...extraEnv },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#isReady = false;
    let seen = '';
    child.stdout.on('data', (bytes: Buffer) => {
      seen = seen.slice(-readyLine.length) + bytes.toString('latin1');
      if (seen.includes(readyLine)) this.#isReady = true;
    });
    child.stdout.pipe(this.#log, { end: false });
    child.stderr.pipe(this.#log, { end: false });
    this.#child = child;
  }

  /**
   * Sends a signal; with `exited` waits until the process is gone. @returns its exit code, null when a signal ended it
   */
  async signal(signal: NodeJS.Signals, { exited = false } = {}): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || !this.alive) return child?.exitCode ?? null;
    const gone = once(child, 'exit');
    child.kill(signal);
    if (!exited) return null;
    await gone;
    return child.exitCode;
  }

  /** kill -9. */
  async kill(): Promise<void> {
    await this.signal('SIGKILL', { exited: true });
  }

  /** SIGTERM, and the exit code it ends with. */
  async terminate(): Promise<number | null> {
    return await this.signal('SIGTERM', { exited: true });
  }
}
