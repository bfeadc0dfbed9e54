import { defaultLimits, type SandboxLimits } from '../limits.ts';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { SandboxUnavailable, type Sandbox, type Sandboxes, type SandboxRequest } from '../sandbox.ts';
import { BubblewrapSandbox } from './bubblewrap-sandbox.ts';
import { Cgroups } from './cgroups.ts';
import { OutputPipes } from './output-pipes.ts';
import { SharedNamespace } from './shared-namespace.ts';

const checkTimeoutMs = 10_000;

export interface BubblewrapSandboxesOptions {
  /**
   * Distinguishes this deployment's sandboxes from others' on the same machine: reaping ignores those. The data
   * directory is a good value.
   */
  readonly deployment: string;
  readonly limits?: Partial<SandboxLimits> | undefined;
  /** false: as on a machine where this process may make no control groups. */
  readonly useCgroups?: boolean;
}

/** Sandboxes made by `bwrap` on this machine, with this machine's programs. For where there is no engine. */
export class BubblewrapSandboxes implements Sandboxes {
  readonly kind = 'bubblewrap';
  readonly #limits: SandboxLimits;
  readonly #cgroups: Cgroups | undefined;
  readonly #pipes = new OutputPipes();

  constructor({ deployment, limits, useCgroups = true }: BubblewrapSandboxesOptions) {
    this.#limits = { ...defaultLimits, ...limits };
    this.#cgroups = useCgroups ? Cgroups.find(deployment) : undefined;
  }

  open(request: SandboxRequest): Sandbox {
    return new BubblewrapSandbox({ request, limits: this.#limits, cgroups: this.#cgroups, pipes: this.#pipes });
  }

  /** Processes end with the worker by themselves, and nothing of a turn is on disk: what remains is control groups. */
  async reap(isAlive: (ownerId: string) => Promise<boolean>): Promise<number> {
    let removed = 0;
    for (const ownerId of this.#cgroups?.owners() ?? []) {
      if (!(await isAlive(ownerId))) removed += (await this.#cgroups?.remove(ownerId)) ?? 0;
    }
    return removed;
  }

  async check(): Promise<void> {
    const asRoot = process.getuid?.() === 0;
    const isolation = asRoot ? [] : ['--unshare-user', '--disable-userns'];
    const [program = '', ...rest] = [
      ...SharedNamespace.making(this.#limits, asRoot),
      'bwrap',
      '--unshare-pid',
      '--unshare-net',
      ...isolation,
    ];
    try {
      await promisify(execFile)(program, [...rest, '--ro-bind', '/', '/', '--proc', '/proc', 'true'], { timeout: checkTimeoutMs });
    } catch (error) {
      throw new SandboxUnavailable('bubblewrap is not installed, or may not make namespaces on this machine.', { cause: error });
    }
  }

  async close(): Promise<void> {
    this.#pipes.close();
    await Promise.resolve();
  }
}
