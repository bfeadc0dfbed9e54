import { closeSync, openSync } from 'node:fs';
import type { SandboxLimits } from '../sandbox.ts';
import { sharedTmp } from './template.ts';

/** The shell steps into control groups before it becomes the next program: that one and all it makes begin in there. */
const stepIn = 'until [ "$1" = -- ]; do echo 0 >"$1" || exit 1; shift; done; shift';

/**
 * The mount namespace that the commands of one turn are made in: this machine's files, and the turn's /tmp, of limited
 * size. No process holds it and nothing of it is on disk: it is there as long as these descriptors are open, and with
 * this process it is gone.
 */
export class SharedNamespace implements Disposable {
  readonly #mounts: number;
  readonly #users: number | undefined;

  private constructor(mounts: number, users: number | undefined) {
    this.#mounts = mounts;
    this.#users = users;
  }

  /**
   * The arguments before the first command of a turn, which makes the namespace. `entryFiles` are the files of its
   * control group.
   */
  static making(limits: SandboxLimits, asRoot: boolean, entryFiles: readonly string[] = []): string[] {
    const script = `${stepIn}; mount -t tmpfs -o size=${String(limits.tmpBytes)},mode=1777,nosuid,nodev tmp ${sharedTmp} && exec "$@"`;
    return ['unshare', '--mount', ...(asRoot ? [] : ['--user', '--map-root-user']), '/bin/sh', '-c', script, 'sh', ...entryFiles, '--'];
  }

  /** Opens the namespace that the first command made, while that command lives. */
  static of(processId: number, asRoot: boolean): SharedNamespace {
    const folder = `/proc/${String(processId)}/ns`;
    const mounts = openSync(`${folder}/mnt`, 'r');
    try {
      return new SharedNamespace(mounts, asRoot ? undefined : openSync(`${folder}/user`, 'r'));
    } catch (error) {
      closeSync(mounts);
      throw error;
    }
  }

  /**
   * The arguments before each further command. By path: a descriptor that it inherited would be open inside as well.
   */
  entering(entryFiles: readonly string[]): string[] {
    const joining = entryFiles.length === 0 ? [] : ['/bin/sh', '-c', `${stepIn}; exec "$@"`, 'sh', ...entryFiles, '--'];
    const users = this.#users === undefined ? [] : [`--user=${buildPath(this.#users)}`, '--preserve-credentials'];
    return [...joining, 'nsenter', ...users, `--mount=${buildPath(this.#mounts)}`];
  }

  [Symbol.dispose](): void {
    closeSync(this.#mounts);
    if (this.#users !== undefined) closeSync(this.#users);
  }
}

function buildPath(descriptor: number): string {
  return `/proc/${String(process.pid)}/fd/${String(descriptor)}`;
}
