import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { becomeOwner, bubblewrapFlags, descriptorContents, type SandboxPlan } from '@concierge/sandbox/bubblewrap';

const runProgram = promisify(execFile);

/** Whose folder becomes the workspace, as the sandboxes see it. */
export interface RawWorkspace {
  readonly root: string;
  readonly uid: number;
  readonly gid: number;
}

/** The parts of the measured sandboxes, by hand: the same image, isolation and limits, without supervision. */
function containerFlags({ root, uid, gid }: RawWorkspace): string[] {
  const walls = '--init --network none --ipc private --read-only --cap-drop ALL --security-opt no-new-privileges --log-driver none';
  const limits = '--pids-limit 256 --memory 1g --memory-swap 1g --cpus 1 --shm-size 64m';
  const ofEach = '--ulimit fsize=536870912 --ulimit nofile=1024 --ulimit core=0 --tmpfs /tmp:rw,nosuid,nodev,exec,size=256m,mode=1777';
  const place = [
    '--user',
    `${String(uid)}:${String(gid)}`,
    '--volume',
    `${root}:/workspace`,
    '--workdir',
    '/workspace',
    '--entrypoint',
    '',
  ];
  return [...[walls, limits, ofEach].flatMap((words) => words.split(' ')), ...place];
}

/** `docker run` to the end of the command; the container is removed when the time has been taken. */
export async function timeDockerRun(image: string, workspace: RawWorkspace, argv: readonly string[]): Promise<number> {
  const name = `concierge-bench-${String(process.pid)}`;
  const startedMs = performance.now();
  await runProgram('docker', ['run', '--name', name, ...containerFlags(workspace), image, ...argv]);
  const ms = performance.now() - startedMs;
  await runProgram('docker', ['rm', '--force', name]);
  return ms;
}

/** A container of the same kind that waits for `docker exec`. */
export class RawContainer implements AsyncDisposable {
  readonly #id: string;

  private constructor(id: string) {
    this.#id = id;
  }

  static async start(image: string, workspace: RawWorkspace): Promise<RawContainer> {
    const { stdout } = await runProgram('docker', ['run', '--detach', ...containerFlags(workspace), image, 'sleep', 'infinity']);
    return new RawContainer(stdout.trim());
  }

  async time(argv: readonly string[]): Promise<number> {
    const startedMs = performance.now();
    await runProgram('docker', ['exec', this.#id, ...argv]);
    return performance.now() - startedMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await runProgram('docker', ['rm', '--force', this.#id]);
  }
}

const tmp = ['--perms', '1777', '--size', '268435456', '--tmpfs', '/tmp'];
const ofEach = 'ulimit -c 0; ulimit -f 1048576; ulimit -n 1024; exec "$@" 2>&1';
const firstDescriptor = 3;

/**
 * A plain `bwrap` call with the same isolation: the flags of the measured sandboxes, but with a separate /tmp for each
 * command. It joins no control group, checks no files before the command starts and cleans up nothing after it.
 */
export class RawBubblewrap {
  readonly #plan: SandboxPlan;
  readonly #contents: ReadonlyMap<number, string>;

  private constructor(plan: SandboxPlan, contents: ReadonlyMap<number, string>) {
    this.#plan = plan;
    this.#contents = contents;
  }

  /** What bubblewrap reads stands in files of this folder. */
  static async prepare(plan: SandboxPlan, folder: string): Promise<RawBubblewrap> {
    await mkdir(folder, { recursive: true });
    const contents = new Map<number, string>();
    for (const [descriptor, content] of descriptorContents(plan)) {
      const path = join(folder, String(descriptor));
      await writeFile(path, content);
      contents.set(descriptor, path);
    }
    return new RawBubblewrap(plan, contents);
  }

  /** Resolves at the end of the command. */
  async time(argv: readonly string[]): Promise<number> {
    const words = [...bubblewrapFlags(this.#plan, tmp), '--', ...becomeOwner(this.#plan), '/bin/sh', '-c', ofEach, 'sh', ...argv];
    const last = Math.max(...this.#contents.keys());
    const opened = Array.from({ length: last + 1 - firstDescriptor }, (_, index) =>
      openSync(this.#contents.get(firstDescriptor + index) ?? '/dev/null', 'r+'),
    );
    const startedMs = performance.now();
    const child = spawn('bwrap', words, { stdio: ['ignore', 'pipe', 'inherit', ...opened] });
    child.stdout?.resume();
    await once(child, 'close');
    const ms = performance.now() - startedMs;
    for (const descriptor of opened) closeSync(descriptor);
    if (child.exitCode !== 0) throw new Error(`bwrap ended with ${String(child.exitCode ?? child.signalCode)}`);
    return ms;
  }
}
