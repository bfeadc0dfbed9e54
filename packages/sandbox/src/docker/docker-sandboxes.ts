import { randomBytes } from 'node:crypto';
import Docker from 'dockerode';
import { defaultLimits, type SandboxLimits } from '../limits.ts';
import type { Sandbox, Sandboxes, SandboxRequest } from '../sandbox.ts';
import { DockerSandbox } from './docker-sandbox.ts';
import { engineError } from './engine-error.ts';
import { labels, type EngineSettings } from './template.ts';
import { remove } from './turn-container.ts';

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
    for (const { Id: id, Labels: marks } of found) {
      if (marks[labels.instance] === this.#engine.instance) continue;
      const owner = marks[labels.owner] ?? '';
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
