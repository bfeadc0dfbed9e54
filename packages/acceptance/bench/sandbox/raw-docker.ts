import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

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
