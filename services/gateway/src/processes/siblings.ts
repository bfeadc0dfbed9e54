import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry, type Registry } from 'prom-client';
import { AppError } from '@concierge/contract';
import { waitForAnswer } from '@concierge/runtime';
import { FromPrimary, Metrics, type FromProcess } from './messages.ts';
import { SharedCounts } from './shared-counts.ts';

/** At the start, when all of them keep the machine busy. */
const OPEN_TIMEOUT_MS = 20_000;
/** Longer than the primary waits for a process that does not answer. */
const GATHER_TIMEOUT_MS = 3000;

/** What one process of a gateway knows of the others. A gateway of one process has no primary and no siblings. */
export class Siblings {
  /** Limits over all processes. */
  readonly counts: SharedCounts;
  readonly #processes: number;
  readonly #primary: Worker | undefined;
  readonly #registry: Registry;
  readonly #orphaned = new AbortController();
  readonly #gathering = new Map<number, (metrics: readonly Metrics[]) => void>();
  #gathers = 0;

  private constructor(processes: number, registry: Registry) {
    this.#processes = processes;
    this.#registry = registry;
    this.#primary = processes === 1 ? undefined : cluster.worker;
    this.counts = this.#primary === undefined ? new SharedCounts() : new SharedCounts((message) => this.#send(message));
    this.#primary?.on('message', (message: unknown) => void this.#hear(message));
    this.#primary?.on('disconnect', () => {
      this.#orphaned.abort();
    });
  }

  /** Resolves when this process knows what the others have. `registry`: of this process. */
  static async open(processes: number, registry: Registry): Promise<Siblings> {
    const siblings = new Siblings(processes, registry);
    await siblings.counts.agree(OPEN_TIMEOUT_MS);
    return siblings;
  }

  /** Aborts when the primary is gone: another gateway may need the port now. */
  get orphaned(): AbortSignal {
    return this.#orphaned.signal;
  }

  /** This process's part of what the whole gateway may do at once. */
  readonly share = (whole: number): number => Math.max(1, Math.floor(whole / this.#processes));

  /** The metrics of all processes added up, for Prometheus. @throws AppError `overloaded` */
  async gatherMetrics(): Promise<string> {
    if (this.#primary?.isConnected() !== true) return this.#registry.metrics();
    this.#gathers += 1;
    const gather = this.#gathers;
    const { promise, resolve } = Promise.withResolvers<readonly Metrics[]>();
    this.#gathering.set(gather, resolve);
    const late = waitForAnswer(GATHER_TIMEOUT_MS).then(() => {
      throw new AppError('overloaded', 'The metrics of all processes could not be gathered.');
    });
    try {
      this.#send({ gather });
      return await AggregatorRegistry.aggregate([...(await Promise.race([promise, late]))]).metrics();
    } finally {
      this.#gathering.delete(gather);
    }
  }

  #send(message: FromProcess): void {
    // A primary that is gone counts nothing; this process stops.
    this.#primary?.send(message, () => undefined);
  }

  async #hear(given: unknown): Promise<void> {
    const message = FromPrimary.parse(given);
    if ('others' in message) this.counts.hearOthers(message.others);
    else if ('counted' in message) this.counts.hearCounted(message.counted);
    else if ('gathered' in message) this.#gathering.get(message.gathered)?.(message.metrics);
    else if ('measure' in message) await this.#measure();
  }

  async #measure(): Promise<void> {
    const measured = Metrics.parse(await this.#registry.getMetricsAsJSON());
    // The others know no less of this process than who reads its metrics.
    this.counts.flush();
    this.#send({ measured });
  }
}
