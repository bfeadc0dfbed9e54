import { execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from '@concierge/testing';
import { runAsRoot } from './small-disk.ts';

/** The kernel caches names and attributes for so long: a machine may not see for a second what another one did. */
const CACHED_SECONDS = 1;

/**
 * A network file system that two machines have mounted: GlusterFS through FUSE, each mount with caches of its own.
 * Needs root, /dev/fuse and `glusterd` (Debian's glusterfs-server).
 */
export class NetworkDisk implements AsyncDisposable {
  readonly logsFolder: string;
  readonly #folder: string;
  readonly #stack: AsyncDisposableStack;

  private constructor(folder: string, stack: AsyncDisposableStack) {
    this.#folder = folder;
    this.#stack = stack;
    this.logsFolder = join(folder, 'logs');
  }

  static async mount(): Promise<NetworkDisk> {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'concierge-network-'));
    stack.defer(async () => rm(folder, { recursive: true, force: true }));
    await startServer();
    const volume = basename(folder);
    await runGluster('volume', 'create', volume, `${hostname()}:${join(folder, 'brick')}`, 'force');
    stack.defer(async () => runGluster('volume', 'delete', volume));
    await runGluster('volume', 'start', volume);
    stack.defer(async () => runGluster('volume', 'stop', volume, 'force'));
    const disk = new NetworkDisk(folder, stack.move());
    await mkdir(disk.logsFolder);
    for (const machine of [0, 1]) await disk.#mountOn(machine, volume);
    return disk;
  }

  /** The data directory as one of the machines has it mounted. */
  dataDirOn(machine: number): string {
    return join(this.#folder, `machine-${String(machine)}`);
  }

  /** Services with an odd number run on the second machine. */
  buildEnvironment(name: string): Record<string, string> {
    const machine = Number(/-(?<number>\d+)$/u.exec(name)?.groups?.['number'] ?? 0) % 2;
    return name.startsWith('redis') ? {} : { DATA_DIR: this.dataDirOn(machine) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #mountOn(machine: number, volume: string): Promise<void> {
    const folder = this.dataDirOn(machine);
    await mkdir(folder);
    const caches = `attribute-timeout=${String(CACHED_SECONDS)},entry-timeout=${String(CACHED_SECONDS)}`;
    await runAsRoot('mount', '-t', 'glusterfs', '-o', caches, `localhost:/${volume}`, folder);
    this.#stack.defer(async () => runAsRoot('umount', '--lazy', folder));
    await runAsRoot('chmod', '0777', folder);
  }
}

/** One server serves all volumes of this machine, and stays. */
async function startServer(): Promise<void> {
  const serves = async (): Promise<boolean> =>
    promisify(execFile)('gluster', ['volume', 'list']).then(
      () => true,
      () => false,
    );
  if (await serves()) return;
  spawn('glusterd', { detached: true, stdio: 'ignore' }).unref();
  await eventually(serves, { timeoutMs: 20_000, everyMs: 200 });
}

async function runGluster(...args: readonly string[]): Promise<void> {
  await runAsRoot('gluster', '--mode=script', ...args);
}
