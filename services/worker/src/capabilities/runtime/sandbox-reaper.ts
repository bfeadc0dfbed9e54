import type { Log } from '@concierge/runtime';
import type { Sandboxes } from '@concierge/sandbox';
import { Reconciler } from '@concierge/turn';
import type { WorkerRunDirectories } from './worker-run-directories.ts';
import type { WorkerLiveness } from './worker-liveness.ts';

const REAP_EVERY_MS = 10_000;

export interface SandboxReaperOptions {
  readonly sandboxes: Pick<Sandboxes, 'reap'> | undefined;
  readonly folders: Pick<WorkerRunDirectories, 'sweep'>;
  readonly liveness: Pick<WorkerLiveness, 'isAlive'>;
  readonly log: Log;
}

/**
 * Removes the sandboxes and folders of killed workers. It runs in every worker from its start on.
 */
export class SandboxReaper extends Reconciler {
  readonly name = 'sandbox reaper';
  readonly #options: SandboxReaperOptions;

  constructor(options: SandboxReaperOptions) {
    super({ everyMs: REAP_EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    const { sandboxes, folders, liveness, log } = this.#options;
    const isAlive = async (workerId: string): Promise<boolean> => await liveness.isAlive(workerId);
    // The folders come first: an engine that is away must not keep them.
    const swept = await folders.sweep(isAlive);
    const removed = (await sandboxes?.reap(isAlive)) ?? 0;
    if (removed + swept > 0) log.info({ sandboxes: removed, folders: swept }, 'cleared away what workers that are gone had left');
  }
}
