import { execFile } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { promisify } from 'node:util';

const runProgram = promisify(execFile);

/** Whose folder becomes the workspace, as the sandboxes see it. */
export interface RawWorkspace {
  readonly root: string;
  readonly uid: number;
  readonly gid: number;
}

/** What the sandboxes that are measured are made of, by hand: the same image, walls and limits, and nothing that looks after them. */
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

const systemFolders = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];

function systemFolder(path: string): string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  return stats.isSymbolicLink() ? ['--symlink', `usr${path}`, path] : ['--ro-bind', path, path];
}

/** `bwrap` with the same namespaces and folders, to the end of the command. */
export async function timeBubblewrap({ root, uid, gid }: RawWorkspace, argv: readonly string[]): Promise<number> {
  const asRoot = process.getuid?.() === 0;
  const namespaces =
    '--unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try --die-with-parent --new-session --hostname sandbox';
  const rights = asRoot
    ? '--cap-drop ALL --cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_SYS_CHROOT'
    : `--cap-drop ALL --unshare-user --disable-userns --uid ${String(uid)} --gid ${String(gid)}`;
  const system = '--clearenv --setenv PATH /usr/bin:/bin --ro-bind /usr /usr';
  const places = ['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--bind', root, '/workspace', '--remount-ro', '/'];
  const flags = [...[namespaces, rights, system].flatMap((words) => words.split(' ')), ...systemFolders.flatMap(systemFolder), ...places];
  const becomeOwner = asRoot ? ['/usr/sbin/chroot', `--userspec=${String(uid)}:${String(gid)}`, '--groups=', '--skip-chdir', '/'] : [];
  const command = [...becomeOwner, '/bin/sh', '-c', 'exec "$@" 2>&1', 'sh', ...argv];
  const startedMs = performance.now();
  await runProgram('bwrap', [...flags, '--chdir', '/workspace', '--', ...command]);
  return performance.now() - startedMs;
}
