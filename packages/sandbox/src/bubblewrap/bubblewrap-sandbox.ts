import { posix } from 'node:path';
import {
  defaultLimits,
  type SandboxLimits,
  RunningCommands,
  SandboxUnavailable,
  type CommandResult,
  type RunOptions,
  type Sandbox,
  type SandboxCommand,
  type SandboxRequest,
  type Sandboxes,
} from '../sandbox.ts';
import { prepareWorkspace, workspacePath } from '../workspace.ts';
import { BubblewrapCommand } from './bubblewrap-command.ts';
import { Cgroups, type TurnCgroup } from './cgroups.ts';
import { OutputPipes } from './output-pipes.ts';
import { seccompProgram } from './seccomp.ts';
import { SharedNamespace } from './shared-namespace.ts';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export interface BubblewrapSandboxOptions {
  readonly request: SandboxRequest;
  readonly limits: SandboxLimits;
  readonly cgroups: Cgroups | undefined;
  readonly pipes: OutputPipes;
}

/**
 * The sandbox of one turn: each command is a separate bubblewrap process, over the same workspace, the same /tmp and
 * the same limits. When a command ends, everything it started ends; other commands of the turn are not affected.
 */
export class BubblewrapSandbox implements Sandbox {
  readonly #request: SandboxRequest;
  readonly #limits: SandboxLimits;
  readonly #cgroups: Cgroups | undefined;
  readonly #pipes: OutputPipes;
  readonly #asRoot = process.getuid?.() === 0;
  readonly #commands = new RunningCommands();
  #namespace: Promise<SharedNamespace> | undefined;
  #turn: TurnCgroup | undefined;

  constructor({ request, limits, cgroups, pipes }: BubblewrapSandboxOptions) {
    this.#request = request;
    this.#limits = limits;
    this.#cgroups = cgroups;
    this.#pipes = pipes;
  }

  async run(command: SandboxCommand, options: RunOptions): Promise<CommandResult> {
    return this.#commands.run(options, async (bounded) => this.#run(command, bounded));
  }

  /** Ends what still runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#commands.stop();
    await this.#commands.ended();
    const known = this.#namespace;
    // Before anything is awaited: its descriptors are closed once, however often this is called.
    this.#namespace = undefined;
    using _ = await known?.catch(() => undefined);
    await this.#turn?.remove();
  }

  async #run(command: SandboxCommand, options: RunOptions): Promise<CommandResult> {
    for (let known = this.#namespace; known !== undefined; known = this.#namespace === known ? undefined : this.#namespace) {
      const namespace = await known.catch(() => undefined);
      if (namespace !== undefined) return this.#runIn(namespace, command, options);
    }
    const { promise, resolve, reject } = Promise.withResolvers<SharedNamespace>();
    // Commands that arrive meanwhile wait for it; when it fails, the next of them tries again.
    promise.catch(() => undefined);
    this.#namespace = promise;
    try {
      return await this.#runWith(command, options, {
        before: (entryFiles) => SharedNamespace.making(this.#limits, this.#asRoot, entryFiles),
        onMade: (processId) => {
          resolve(SharedNamespace.of(processId, this.#asRoot));
        },
      });
    } finally {
      reject(new SandboxUnavailable('The sandbox could not be made.'));
    }
  }

  async #runIn(namespace: SharedNamespace, command: SandboxCommand, options: RunOptions): Promise<CommandResult> {
    return this.#runWith(command, options, { before: (entryFiles) => namespace.entering(entryFiles), onMade: () => undefined });
  }

  async #runWith(command: SandboxCommand, options: RunOptions, { before, onMade }: Entrance): Promise<CommandResult> {
    const workspace = await prepareWorkspace(this.#request);
    this.#turn ??= this.#cgroups?.makeTurn(this.#request.ownerId, this.#limits);
    const cgroup = this.#turn?.makeCommand();
    const plan = {
      workspace,
      limits: this.#limits,
      dispatcherFolder: this.#request.dispatcherFolder,
      cwd: posix.join(workspacePath, command.cwd ?? '.'),
      argv: command.argv,
      asRoot: this.#asRoot,
      inCgroup: cgroup !== undefined,
      filtersCalls: seccompProgram() !== undefined,
    };
    const pipe = await this.#pipes.take();
    try {
      return await new BubblewrapCommand({
        plan,
        before: before(cgroup?.entryFiles ?? []),
        command,
        options,
        cgroup,
        pipe,
        onMade,
      }).result();
    } finally {
      pipe.done();
      cgroup?.discard();
    }
  }
}

/** The arguments by which a command enters the turn's namespace. */
interface Entrance {
  readonly before: (entryFiles: readonly string[]) => readonly string[];
  readonly onMade: (processId: number) => void;
}

/** It takes milliseconds, but for a machine that has much to do. */
const checkTimeoutMs = 30_000;

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
