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
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { answerDeadline } from '@concierge/runtime';
import type Docker from 'dockerode';
import { engineError } from './engine-error.ts';

const containersMax = 3;

/** @throws SandboxUnavailable */
type Connect = () => Promise<Docker>;

/**
 * The sandbox of one turn: a container made with the first command; each further command is an exec in it. When a
 * command could not be ended alone, or a covered file has been replaced, the next command gets a new container.
 */
export class DockerSandbox implements Sandbox {
  readonly #connect: Connect;
  readonly #engine: EngineSettings;
  readonly #request: SandboxRequest;
  readonly #commands = new RunningCommands();
  readonly #containers = new Set<Promise<TurnContainer>>();
  #current: Promise<TurnContainer> | undefined;

  constructor(connect: Connect, engine: EngineSettings, request: SandboxRequest) {
    this.#connect = connect;
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
    return TurnContainer.start(await this.#connect(), { engine: this.#engine, request: this.#request, workspace });
  }
}

/** An engine that hangs delays a start by this; one that has much to do must not leave a service without commands. */
const checkTimeoutMs = 30_000;
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
  #docker: Docker | undefined;
  readonly #engine: EngineSettings;
  readonly #owners = new Set<string>();

  constructor({ deployment, image = defaultImage, runtime, dataFolder, limits }: DockerSandboxesOptions) {
    const instance = randomBytes(8).toString('hex');
    this.#engine = { deployment, image, runtime, dataFolder, instance, limits: { ...defaultLimits, ...limits } };
  }

  open(request: SandboxRequest): Sandbox {
    this.#owners.add(request.ownerId);
    return new DockerSandbox(async () => this.#connect(), this.#engine, request);
  }

  /** Several workers may do it at once: a container that another worker removes meanwhile counts as removed. */
  async reap(isAlive: (ownerId: string) => Promise<boolean>): Promise<number> {
    const label = [`${labels.deployment}=${this.#engine.deployment}`];
    const docker = await this.#connect();
    const found = await docker
      .listContainers({ all: true, filters: { label }, limit: reapedMax, abortSignal: answerDeadline(checkTimeoutMs) })
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
      await remove(docker.getContainer(id));
      removed += 1;
    }
    return removed;
  }

  async check(): Promise<void> {
    try {
      const docker = await this.#connect();
      await docker.listContainers({ limit: 1, abortSignal: answerDeadline(checkTimeoutMs) });
      await docker.getImage(this.#engine.image).inspect();
    } catch (error) {
      throw engineError(error, this.#engine.image);
    }
  }

  /** Connections end with their requests. */
  async close(): Promise<void> {
    await Promise.resolve();
  }

  /** The client is 1.6 MB of source: not loaded where there is nothing that it could connect to. */
  async #connect(): Promise<Docker> {
    if (this.#docker !== undefined) return this.#docker;
    if (!mayHaveEngine()) throw new SandboxUnavailable('The container engine does not answer.');
    const { default: Client } = await import('dockerode');
    this.#docker ??= new Client();
    return this.#docker;
  }

  /** An owner of ours in another instance is an earlier life of this process. */
  async #lives(owner: string, isAlive: (ownerId: string) => Promise<boolean>): Promise<boolean> {
    return !this.#owners.has(owner) && isAlive(owner);
  }
}

/** Where the client looks unless DOCKER_HOST names a place. */
function mayHaveEngine(): boolean {
  // eslint-disable-next-line node/no-process-env -- the client reads it from there
  const named = process.env['DOCKER_HOST'] ?? '';
  const sockets = ['/var/run/docker.sock', join(homedir(), '.docker', 'run', 'docker.sock')];
  return named !== '' || sockets.some((path) => existsSync(path));
}
