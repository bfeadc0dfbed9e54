import { createHash, randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { SandboxLimits } from '../sandbox.ts';

const mountPoint = '/sys/fs/cgroup';
const ours = 'concierge-sandbox';
const nameCharacters = 16;
const controllers = ['memory', 'pids', 'cpu'] as const;
const cpuPeriodUs = 100_000;

const leaveTries = 100;
const leaveEveryMs = 20;

/**
 * The control groups of this machine, when this process may make some:
 * `concierge-sandbox/<deployment>/<owner>/<turn>/<command>`. The turn's has the limits, the command's its processes.
 * Version 2 is one tree; version 1 is one tree for each controller, all with the same folders. The calls are
 * synchronous: the kernel answers from memory, and a detour over the thread pool takes longer.
 */
export class Cgroups {
  readonly #trees: readonly string[];
  readonly #isUnified: boolean;

  private constructor(trees: readonly string[], isUnified: boolean) {
    this.#trees = trees;
    this.#isUnified = isUnified;
  }

  /** undefined where this process may not limit both memory and processes. */
  static find(deployment: string): Cgroups | undefined {
    const name = createHash('sha256').update(deployment).digest('hex').slice(0, nameCharacters);
    return existsSync(join(mountPoint, 'cgroup.controllers')) ? Cgroups.#findUnified(name) : Cgroups.#findSplit(name);
  }

  static #findSplit(name: string): Cgroups | undefined {
    const trees = controllers.map((controller) => join(mountPoint, controller, ours, name)).filter(tryToMake);
    const named = (controller: string): boolean => trees.some((tree) => tree.includes(`/${controller}/`));
    return named('memory') && named('pids') ? new Cgroups(trees, false) : undefined;
  }

  static #findUnified(name: string): Cgroups | undefined {
    for (const parent of [mountPoint, dirname(join(mountPoint, ownUnifiedPath()))]) {
      const tree = join(parent, ours, name);
      if (share(parent) && tryToMake(tree) && share(dirname(tree)) && share(tree) && hasControllers(tree)) return new Cgroups([tree], true);
    }
    return undefined;
  }

  makeTurn(ownerId: string, limits: SandboxLimits): TurnCgroup {
    const turn = join(encodeURIComponent(ownerId), randomBytes(8).toString('hex'));
    const folders = this.#trees.map((tree) => join(tree, turn));
    for (const folder of folders) mkdirSync(folder, { recursive: true });
    if (this.#isUnified) {
      for (const folder of folders) {
        share(dirname(folder));
        share(folder);
      }
    }
    for (const [name, value] of this.#isUnified ? unifiedLimits(limits) : splitLimits(limits)) {
      for (const folder of folders) writeIfThere(join(folder, name), value);
    }
    return new TurnCgroup(folders);
  }

  owners(): string[] {
    const names = this.#trees.flatMap((tree) => foldersIn(tree));
    return [...new Set(names)].map((name) => decodeURIComponent(name));
  }

  /** Ends what an owner that is gone left running, and takes its groups away; how many turns it had. */
  async remove(ownerId: string): Promise<number> {
    const folders = this.#trees.map((tree) => join(tree, encodeURIComponent(ownerId)));
    const turns = new Set(folders.flatMap((folder) => foldersIn(folder)));
    for (const turn of turns) await new TurnCgroup(folders.map((folder) => join(folder, turn))).remove();
    for (const folder of folders) removeIfEmpty(folder);
    return turns.size;
  }
}

/** The limits of one turn. */
export class TurnCgroup {
  readonly #folders: readonly string[];
  #commands = 0;

  constructor(folders: readonly string[]) {
    this.#folders = folders;
  }

  makeCommand(): CommandCgroup {
    this.#commands += 1;
    const folders = this.#folders.map((folder) => join(folder, String(this.#commands)));
    for (const folder of folders) mkdirSync(folder);
    return new CommandCgroup(folders);
  }

  /** Kills whatever is still in there. */
  async remove(): Promise<void> {
    const commands = new Set(this.#folders.flatMap((folder) => foldersIn(folder)));
    for (const command of commands) await new CommandCgroup(this.#folders.map((folder) => join(folder, command))).remove();
    for (const folder of this.#folders) {
      removeIfEmpty(folder);
      // The owner's, when this was its last turn.
      removeIfEmpty(dirname(folder));
    }
  }
}

/** The processes of one command. */
export class CommandCgroup {
  readonly #folders: readonly string[];

  constructor(folders: readonly string[]) {
    this.#folders = folders;
  }

  /**
   * The files by which a process puts itself into the group, writing 0 to each: whatever it becomes and makes is in
   * there from the beginning. To move another process, or one of several threads, the kernel first waits for a quiet
   * moment of all processors, which takes longer than making a sandbox. A single thread that moves itself need not
   * wait, through the file that only version 1 has.
   */
  get entryFiles(): readonly string[] {
    return this.#folders.map((folder) => join(folder, existsSync(join(folder, 'tasks')) ? 'tasks' : 'cgroup.procs'));
  }

  /** Whether the kernel has killed any of its processes for lack of memory. */
  get ranOutOfMemory(): boolean {
    return this.#folders.some((folder) =>
      ['memory.oom_control', 'memory.events'].some(
        (name) => Number(/^oom_kill (\d+)$/mu.exec(readIfThere(join(folder, name)))?.[1] ?? 0) > 0,
      ),
    );
  }

  /** Removes the group of an ended command. A group that cannot be removed yet is removed with the turn. */
  discard(): void {
    for (const folder of this.#folders) removeIfEmpty(folder);
  }

  /** The kernel takes a moment to forget processes that are dead: until then the folders stay. */
  async remove(): Promise<void> {
    for (let attempt = 0; attempt < leaveTries; attempt += 1) {
      const left = this.#folders.filter((folder) => !removeIfEmpty(folder));
      if (left.length === 0) return;
      killAll(left);
      await wait(leaveEveryMs);
    }
  }
}

function unifiedLimits({ memoryBytes, pids, cpus }: SandboxLimits): [string, string][] {
  return [
    ['memory.max', String(memoryBytes)],
    ['memory.swap.max', '0'],
    ['pids.max', String(pids)],
    ['cpu.max', `${String(Math.round(cpus * cpuPeriodUs))} ${String(cpuPeriodUs)}`],
  ];
}

function splitLimits({ memoryBytes, pids, cpus }: SandboxLimits): [string, string][] {
  return [
    ['memory.limit_in_bytes', String(memoryBytes)],
    ['memory.memsw.limit_in_bytes', String(memoryBytes)],
    ['pids.max', String(pids)],
    ['cpu.cfs_period_us', String(cpuPeriodUs)],
    ['cpu.cfs_quota_us', String(Math.round(cpus * cpuPeriodUs))],
  ];
}

function ownUnifiedPath(): string {
  return /^0::(.*)$/mu.exec(readIfThere('/proc/self/cgroup'))?.[1] ?? '/';
}

function hasControllers(folder: string): boolean {
  const given = readIfThere(join(folder, 'cgroup.subtree_control')).split(/\s+/u);
  return given.includes('memory') && given.includes('pids');
}

/** Lets the groups below limit what this one may. One by one: a machine without one of them gives the others. */
function share(folder: string): boolean {
  for (const controller of controllers) {
    try {
      writeFileSync(join(folder, 'cgroup.subtree_control'), `+${controller}`);
    } catch {
      // Seen in `hasControllers`.
    }
  }
  return existsSync(folder);
}

function tryToMake(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function writeIfThere(path: string, value: string): void {
  if (existsSync(path)) writeFileSync(path, value);
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}

function removeIfEmpty(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return !existsSync(folder);
  }
}

function killAll(folders: readonly string[]): void {
  const processIds = folders.flatMap((folder) => readIfThere(join(folder, 'cgroup.procs')).split('\n'));
  for (const processId of new Set(processIds.filter((line) => line !== ''))) {
    try {
      process.kill(Number(processId), 'SIGKILL');
    } catch {
      // The process is already gone.
    }
  }
}
