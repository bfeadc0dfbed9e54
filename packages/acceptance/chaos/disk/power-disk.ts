import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually, type System } from '@concierge/testing';
import { RedisFaults } from '../redis/redis-faults.ts';
import type { ChaosRig } from '../rig.ts';
import { runAsRoot } from './small-disk.ts';

const MEGABYTES = 512;
const preload = new URL('power-cut-main.ts', import.meta.url);

/**
 * A file system of its own whose power can be cut: what was not synced is gone, names and content, as ext4 leaves it
 * (ioctl FS_IOC_SHUTDOWN without a flush of its journal). Needs root, loop devices and `xfs_io` (Debian's xfsprogs).
 */
export class PowerDisk implements AsyncDisposable {
  readonly dataDir: string;
  readonly logsFolder: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.dataDir = join(folder, 'data');
    this.logsFolder = join(folder, 'logs');
  }

  static async mount(): Promise<PowerDisk> {
    const disk = new PowerDisk(await mkdtemp(join(tmpdir(), 'concierge-power-')));
    for (const folder of [disk.dataDir, disk.logsFolder]) await mkdir(folder);
    await writeFile(disk.#image, '');
    await truncate(disk.#image, MEGABYTES * 1024 * 1024);
    await promisify(execFile)('mkfs.ext4', ['-q', disk.#image]);
    await disk.#start();
    await runAsRoot('chmod', '0777', disk.dataDir);
    return disk;
  }

  /** Of services on this disk. `forgets`: nothing is synced, although they are told that it is. */
  buildEnvironment({ forgets }: { readonly forgets: boolean }): Record<string, string> {
    const given = new URLSearchParams({ bootFile: this.#bootFile, ...(forgets && { forgets: 'all' }) });
    return { NODE_OPTIONS: `--import=${preload.href}?${String(given)}` };
  }

  /** What was made so far stays: a test's own files are not what is tried. */
  async sync(): Promise<void> {
    await promisify(execFile)('sync', ['-f', this.dataDir]);
  }

  /** Takes the power away. Processes that use the disk get errors from now on, and must end before `restore`. */
  async cut(): Promise<void> {
    await runAsRoot('xfs_io', '-x', '-c', 'shutdown', this.dataDir);
  }

  /** The machine starts again: with another boot id, and what the disk has. */
  async restore(): Promise<void> {
    await eventually(async () => this.#unmount(), { timeoutMs: 20_000, everyMs: 200 });
    await this.#start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await runAsRoot('umount', '--lazy', this.dataDir);
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #start(): Promise<void> {
    await writeFile(this.#bootFile, randomUUID());
    await runAsRoot('mount', '-o', 'loop', this.#image, this.dataDir);
  }

  async #unmount(): Promise<boolean> {
    return runAsRoot('umount', this.dataDir).then(
      () => true,
      () => false,
    );
  }

  get #image(): string {
    return join(this.#folder, 'image');
  }

  get #bootFile(): string {
    return join(this.#folder, 'boot-id');
  }
}

/** The machine of all services loses its power; Redis, on another one, goes on, or loses its last second with it. */
export async function cutPower(rig: ChaosRig<System>, disk: PowerDisk, { alsoRedis }: { readonly alsoRedis: boolean }): Promise<void> {
  const { services, redis } = rig.target;
  const cut = async (): Promise<void> => {
    await disk.cut();
    for (const service of services) {
      await service.kill();
      rig.evidence.fault({ atMs: Date.now(), kind: 'kill', target: service.name });
    }
    await disk.restore();
  };
  if (alsoRedis) await new RedisFaults(redis, rig.evidence).run('truncated', cut);
  else await cut();
  for (const service of services) service.start();
  await rig.target.ready();
}
