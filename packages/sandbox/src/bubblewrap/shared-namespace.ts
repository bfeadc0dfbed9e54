import { open, type FileHandle } from 'node:fs/promises';
import type { SandboxLimits } from '../limits.ts';
import { sharedTmp } from './template.ts';

/**
 * The mount namespace that the commands of one turn are made in: this machine's files, and the turn's /tmp, of limited size. No process
 * holds it and nothing of it is on disk: it is there as long as these descriptors are open, and with this process it is gone.
 */
export class SharedNamespace implements AsyncDisposable {
  readonly #mounts: FileHandle;
  readonly #users: FileHandle | undefined;

  private constructor(mounts: FileHandle, users: FileHandle | undefined) {
    this.#mounts = mounts;
    this.#users = users;
  }

  /** The words before the first command of a turn: it makes the namespace. */
  static making(limits: SandboxLimits, asRoot: boolean): string[] {
    const mountTmp = `mount -t tmpfs -o size=${String(limits.tmpBytes)},mode=1777,nosuid,nodev tmp ${sharedTmp} && exec "$@"`;
    return ['unshare', '--mount', ...(asRoot ? [] : ['--user', '--map-root-user']), '/bin/sh', '-c', mountTmp, 'sh'];
  }

  /** Takes hold of what the first command made, while it lives. */
  static async of(processId: number, asRoot: boolean): Promise<SharedNamespace> {
    const folder = `/proc/${String(processId)}/ns`;
    const users = asRoot ? undefined : await open(`${folder}/user`);
    return new SharedNamespace(await open(`${folder}/mnt`), users);
  }

  /** The words before each further command. By path: a descriptor that it inherited would be open inside as well. */
  entering(): string[] {
    const users = this.#users === undefined ? [] : [`--user=${pathOf(this.#users)}`, '--preserve-credentials'];
    return ['nsenter', ...users, `--mount=${pathOf(this.#mounts)}`];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#mounts.close();
    await this.#users?.close();
  }
}

function pathOf({ fd }: FileHandle): string {
  return `/proc/${String(process.pid)}/fd/${String(fd)}`;
}
