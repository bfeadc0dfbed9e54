import { AggregatorRegistry, type Registry } from 'prom-client';
import { setTimeout as wait } from 'node:timers/promises';
import { Metrics } from './messages.ts';

/** A process that hangs is counted as it last answered. */
const ANSWER_TIMEOUT_MS = 1000;

/**
 * The primary's side of /metrics: what each process measured last, what ended ones had counted, so that no sum falls
 * when a process is started anew, and what the primary itself takes.
 */
export class GatheredMetrics {
  readonly #own: Registry;
  readonly #ask: (processId: number) => void;
  readonly #last = new Map<number, Metrics>();
  readonly #awaited = new Map<number, () => void>();
  #ended: readonly Metrics[] = [];
  #gathering: Promise<Metrics[]> | undefined;

  constructor(own: Registry, ask: (processId: number) => void) {
    this.#own = own;
    this.#ask = ask;
  }

  /** All registries, to be added up. Those who ask at once share one answer. */
  async gather(processIds: readonly number[]): Promise<Metrics[]> {
    this.#gathering ??= this.#gatherAll(processIds).finally(() => (this.#gathering = undefined));
    return this.#gathering;
  }

  hear(processId: number, metrics: Metrics): void {
    this.#last.set(processId, metrics);
    this.#awaited.get(processId)?.();
  }

  forget(processId: number): void {
    const counted = (this.#last.get(processId) ?? []).filter(({ type }) => type !== 'gauge');
    this.#last.delete(processId);
    this.#ended = [...this.#ended, counted];
    this.#awaited.get(processId)?.();
  }

  async #gatherAll(processIds: readonly number[]): Promise<Metrics[]> {
    const answered = processIds.map(async (id) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#awaited.set(id, resolve);
      this.#ask(id);
      await promise;
      this.#awaited.delete(id);
    });
    await Promise.race([Promise.all(answered), wait(ANSWER_TIMEOUT_MS, undefined, { ref: false })]);
    const own = await this.#measureOwn();
    await this.#addUpEnded();
    return [own, ...this.#ended, ...this.#last.values()];
  }

  /** However many have ended, they take the memory of one. */
  async #addUpEnded(): Promise<void> {
    const before = this.#ended;
    const sum = Metrics.parse(await AggregatorRegistry.aggregate([...before]).getMetricsAsJSON());
    this.#ended = [sum, ...this.#ended.slice(before.length)];
  }

  /** Time, memory and files count for the whole; the primary's event loop and heap serve no request. */
  async #measureOwn(): Promise<Metrics> {
    const own = Metrics.parse(await this.#own.getMetricsAsJSON());
    return own
      .filter(({ name }) => name.startsWith('process_'))
      .map((metric) => (metric.name === 'process_start_time_seconds' ? { ...metric, aggregator: 'first' } : metric));
  }
}
