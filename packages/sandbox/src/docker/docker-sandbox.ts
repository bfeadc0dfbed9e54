import type Docker from 'dockerode';
import {
  SandboxUnavailable,
  type CommandResult,
  type RunOptions,
  type Sandbox,
  type SandboxCommand,
  type SandboxRequest,
} from '../sandbox.ts';
import { prepareWorkspace } from '../workspace.ts';
import type { EngineSettings } from './template.ts';
import { TurnContainer } from './turn-container.ts';

const containersMax = 3;

/**
 * The sandbox of one turn: a container made with the first command; each further command is an exec in it. When a
 * command could not be ended alone, or a covered file has been replaced, the next command gets a new container.
 */
export class DockerSandbox implements Sandbox {
  readonly #docker: Docker;
  readonly #engine: EngineSettings;
  readonly #request: SandboxRequest;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  readonly #containers = new Set<Promise<TurnContainer>>();
  #current: Promise<TurnContainer> | undefined;

  constructor(docker: Docker, engine: EngineSettings, request: SandboxRequest) {
    this.#docker = docker;
    this.#engine = engine;
    this.#request = request;
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

  /** The containers are removed first: commands end with their container, and their callers get `stopped`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    const containers = await Promise.allSettled(this.#containers);
    await Promise.all(containers.map(async (made) => (made.status === 'fulfilled' ? made.value.remove() : undefined)));
    await Promise.allSettled(this.#running);
  }

  async #run(command: SandboxCommand, options: RunOptions): Promise<CommandResult> {
    const startedMs = performance.now();
    for (let attempt = 0; attempt < containersMax; attempt += 1) {
      const container = await this.#usable();
      if (options.signal.aborted) return { end: { kind: 'stopped' }, output: '', outputBytes: 0, durationMs: 0 };
      const outcome = await container.run(command, options);
      if (outcome !== undefined) return { ...outcome, durationMs: performance.now() - startedMs };
    }
    throw new SandboxUnavailable('The container ended again and again before the command could start.');
  }

  /** The container that is there, or a new one; several callers at once get the same. */
  async #usable(): Promise<TurnContainer> {
    const current = this.#current;
    if (current !== undefined) {
      const container = await current.catch(() => undefined);
      if ((await container?.isUsable()) === true && container !== undefined) return container;
      if (this.#current !== current) return this.#usable();
    }
    const made = this.#make();
    this.#current = made;
    this.#containers.add(made);
    return made;
  }

  async #make(): Promise<TurnContainer> {
    const workspace = await prepareWorkspace(this.#request);
    return TurnContainer.start(this.#docker, { engine: this.#engine, request: this.#request, workspace });
  }
}
