import { posix } from 'node:path';
import type { SandboxLimits } from '../limits.ts';
import {
  SandboxUnavailable,
  type CommandResult,
  type RunOptions,
  type Sandbox,
  type SandboxCommand,
  type SandboxRequest,
} from '../sandbox.ts';
import { prepareWorkspace, workspacePath } from '../workspace.ts';
import { BubblewrapCommand } from './bubblewrap-command.ts';
import type { Cgroups, TurnCgroup } from './cgroups.ts';
import type { OutputPipes } from './output-pipes.ts';
import { seccompProgram } from './seccomp.ts';
import { SharedNamespace } from './shared-namespace.ts';

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
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  #namespace: Promise<SharedNamespace> | undefined;
  #turn: TurnCgroup | undefined;

  constructor({ request, limits, cgroups, pipes }: BubblewrapSandboxOptions) {
    this.#request = request;
    this.#limits = limits;
    this.#cgroups = cgroups;
    this.#pipes = pipes;
  }

  async run(command: SandboxCommand, options: RunOptions): Promise<CommandResult> {
    if (this.#closing.signal.aborted) throw new SandboxUnavailable('The sandbox has been closed.');
    const signal = AbortSignal.any([options.signal, this.#closing.signal]);
    const run = this.#run(command, { ...options, signal });
    this.#running.add(run);
    try {
      return await run;
    } finally {
      this.#running.delete(run);
    }
  }

  /** Ends what still runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#running);
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
        before: (doors) => SharedNamespace.making(this.#limits, this.#asRoot, doors),
        onMade: (processId) => {
          resolve(SharedNamespace.of(processId, this.#asRoot));
        },
      });
    } finally {
      reject(new SandboxUnavailable('The sandbox could not be made.'));
    }
  }

  async #runIn(namespace: SharedNamespace, command: SandboxCommand, options: RunOptions): Promise<CommandResult> {
    return this.#runWith(command, options, { before: (doors) => namespace.entering(doors), onMade: () => undefined });
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
      return await new BubblewrapCommand({ plan, before: before(cgroup?.doors ?? []), command, options, cgroup, pipe, onMade }).result();
    } finally {
      pipe.done();
      cgroup?.discard();
    }
  }
}

/** The arguments by which a command enters the turn's namespace. */
interface Entrance {
  readonly before: (doors: readonly string[]) => readonly string[];
  readonly onMade: (processId: number) => void;
}
