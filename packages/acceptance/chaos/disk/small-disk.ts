import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { eventually, type System } from '@concierge/testing';
import { probe } from '../redis/cut-connections.ts';
import type { ChaosRig } from '../rig.ts';

const run = promisify(execFile);
const PIECE_BYTES = 64 * 1024;
const FILL_AGAIN_MS = 100;

/** In front of a command that only root may run. */
export const asRoot: readonly string[] = process.getuid?.() === 0 ? [] : ['sudo', '-n'];

export async function runAsRoot(...command: readonly string[]): Promise<void> {
  const [program = '', ...args] = [...asRoot, ...command];
  await run(program, args);
}

/** A file system of a few megabytes that a test may fill to the last byte; what services print goes elsewhere. */
export class SmallDisk implements AsyncDisposable {
  readonly dataDir: string;
  readonly logsFolder: string;
  readonly #folder: string;
  #isFull = new AbortController();
  #filling: Promise<void> = Promise.resolve();

  private constructor(folder: string) {
    this.#folder = folder;
    this.dataDir = join(folder, 'data');
    this.logsFolder = join(folder, 'logs');
  }

  static async mount(megabytes: number): Promise<SmallDisk> {
    const disk = new SmallDisk(await mkdtemp(join(tmpdir(), 'concierge-disk-')));
    await mkdir(disk.dataDir);
    await mkdir(disk.logsFolder);
    await runAsRoot('mount', '-t', 'tmpfs', '-o', `size=${String(megabytes)}m,mode=0777`, 'tmpfs', disk.dataDir);
    return disk;
  }

  /** Takes every byte that is free, and keeps doing so. */
  fill(): void {
    this.#isFull = new AbortController();
    this.#filling = this.#keepFull(this.#isFull.signal);
  }

  async free(): Promise<void> {
    this.#isFull.abort();
    await this.#filling;
    await rm(this.#filler, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.free();
    await runAsRoot('umount', '--lazy', this.dataDir);
    await rm(this.#folder, { recursive: true, force: true });
  }

  get #filler(): string {
    return join(this.dataDir, 'filler');
  }

  async #keepFull(isOver: AbortSignal): Promise<void> {
    await using file = await open(this.#filler, 'a');
    while (!isOver.aborted) {
      let size = PIECE_BYTES;
      while (size >= 1 && !isOver.aborted) {
        // Smaller and smaller pieces, until not a byte fits any more.
        const fitted = await file.write(Buffer.alloc(size)).then(
          () => true,
          () => false,
        );
        if (!fitted) size = Math.floor(size / 2);
      }
      await wait(FILL_AGAIN_MS);
    }
  }
}

/** All the while turns are asked, and most cannot be taken. */
const FULL_MS = 5000;
/** What was taken while a few bytes were left is answered when there are more again. */
const PATIENCE_MS = 1000;
const NOTICED_TIMEOUT_MS = 20_000;
const BACK_TIMEOUT_MS = 60_000;

/** The disk is full for a while, and has room again. */
export async function fillDisk(rig: ChaosRig<System>, disk: SmallDisk): Promise<void> {
  const [keys] = rig.tenants.values();
  const { gatewayUrls } = rig.target;
  const isReady = async (): Promise<boolean> => {
    const answers = await Promise.all(gatewayUrls.map(async (url) => (await fetch(`${url}/readyz`)).ok));
    return answers.every(Boolean);
  };
  const isOver = new AbortController();
  const fullAtMs = Date.now();
  disk.fill();
  const body = (): object => ({ message: 'hello' });
  const isPutOff = Promise.withResolvers<void>();
  const asking = { gateways: gatewayUrls, apiKey: keys?.cs ?? '', evidence: rig.evidence, path: '/api/cs', body };
  const asked = { ...asking, timeoutMs: PATIENCE_MS, onLater: () => isPutOff.resolve() };
  const probing = probe(asked, isOver.signal);
  await wait(FULL_MS);
  const isNoticed = eventually(async () => !(await isReady()), { timeoutMs: NOTICED_TIMEOUT_MS, everyMs: 250 });
  const wasReady = await isNoticed.then(
    () => false,
    () => true,
  );
  // On a machine that answers late none may have been answered in time so far.
  await Promise.race([isPutOff.promise, wait(NOTICED_TIMEOUT_MS)]);
  isOver.abort();
  const { later: refusals } = await probing;
  rig.evidence.fault({ atMs: fullAtMs, kind: 'disk-full', target: 'disk', refusals, wasReady });
  await disk.free();
  rig.evidence.fault({ atMs: Date.now(), kind: 'disk-free', target: 'disk' });
  await eventually(isReady, { timeoutMs: BACK_TIMEOUT_MS, everyMs: 250 });
}
