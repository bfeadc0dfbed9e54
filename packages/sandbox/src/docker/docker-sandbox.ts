import {
  RunningCommands,
  SandboxUnavailable,
  type CommandResult,
  type RunOptions,
  type Sandbox,
  type SandboxCommand,
  type SandboxRequest,
  type Sandboxes,
  defaultLimits,
  type SandboxLimits,
} from '../sandbox.ts';
import { prepareWorkspace } from '../workspace.ts';
import { labels, type EngineSettings } from './template.ts';
import { TurnContainer, remove } from './turn-container.ts';
import { randomBytes } from 'node:crypto';
import Docker from 'dockerode';
import { engineError } from './engine-error.ts';

const containersMax = 3;

/**
 * The sandbox of one turn: a container made with the first command; each further command is an exec in it. When a
 * command could not be ended alone, or a covered file has been replaced, the next command gets a new container.
 */
export class DockerSandbox implements Sandbox {
  readonly #docker: Docker;
  readonly #engine: EngineSettings;
  readonly #request: SandboxRequest;
  readonly #commands = new RunningCommands();
  readonly #containers = new Set<Promise<TurnContainer>>();
  #current: Promise<TurnContainer> | undefined;

  constructor(docker: Docker, engine: EngineSettings, request: SandboxRequest) {
    this.#docker = docker;
    this.#engine = engine;
    this.#request = request;
  }

  async run(command: SandboxCommand, options: RunOptions): Promise<CommandResult> {
    return this.#commands.run(options, async (bounded) => this.#run(command, bounded));
  }

  /** The containers are removed first: commands end with their container, and their callers get `stopped`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#commands.stop();
    const containers = await Promise.allSettled(this.#containers);
    await Promise.all(containers.map(async (made) => (made.status === 'fulfilled' ? made.value.remove() : undefined)));
    await this.#commands.ended();
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

const checkTimeoutMs = 10_000;
const reapedMax = 200;
const defaultImage = 'concierge-sandbox';

export interface DockerSandboxesOptions {
  /**
   * Distinguishes this deployment's sandboxes from others' on the same engine: reaping ignores those. The data
   * directory is a good value.
   */
  readonly deployment: string;
  readonly image?: string | undefined;
  /** SANDBOX_RUNTIME */
  readonly runtime?: string | undefined;
  /** HOST_DATA_DIR: where `here` is on the engine's machine. */
  readonly dataFolder?: { readonly here: string; readonly onHost: string } | undefined;
  readonly limits?: Partial<SandboxLimits> | undefined;
}

/** Containers of the engine that DOCKER_HOST names, or of this machine's. */
export class DockerSandboxes implements Sandboxes {
  readonly kind = 'docker';
  readonly #docker = new Docker();
  readonly #engine: EngineSettings;
  readonly #owners = new Set<string>();

  constructor({ deployment, image = defaultImage, runtime, dataFolder, limits }: DockerSandboxesOptions) {
    const instance = randomBytes(8).toString('hex');
    this.#engine = { deployment, image, runtime, dataFolder, instance, limits: { ...defaultLimits, ...limits } };
  }

  open(request: SandboxRequest): Sandbox {
    this.#owners.add(request.ownerId);
    return new DockerSandbox(this.#docker, this.#engine, request);
  }

  /** Several workers may do it at once: a container that another worker removes meanwhile counts as removed. */
  async reap(isAlive: (ownerId: string) => Promise<boolean>): Promise<number> {
    const label = [`${labels.deployment}=${this.#engine.deployment}`];
    const found = await this.#docker
      .listContainers({ all: true, filters: { label }, limit: reapedMax, abortSignal: AbortSignal.timeout(checkTimeoutMs) })
      .catch((error: unknown) => {
        throw engineError(error, this.#engine.image);
      });
    const alive = new Map<string, Promise<boolean>>();
    let removed = 0;
    for (const { Id: id, Labels: labelled } of found) {
      if (labelled[labels.instance] === this.#engine.instance) continue;
      const owner = labelled[labels.owner] ?? '';
      const lives = alive.get(owner) ?? this.#lives(owner, isAlive);
      alive.set(owner, lives);
      if (await lives) continue;
      await remove(this.#docker.getContainer(id));
      removed += 1;
    }
    return removed;
  }

  async check(): Promise<void> {
    try {
      await this.#docker.listContainers({ limit: 1, abortSignal: AbortSignal.timeout(checkTimeoutMs) });
      await this.#docker.getImage(this.#engine.image).inspect();
    } catch (error) {
      throw engineError(error, this.#engine.image);
    }
  }

  /** Connections end with their requests. */
  async close(): Promise<void> {
    await Promise.resolve();
  }

  /** An owner of ours in another instance is an earlier life of this process. */
  async #lives(owner: string, isAlive: (ownerId: string) => Promise<boolean>): Promise<boolean> {
    return !this.#owners.has(owner) && isAlive(owner);
  }
}
