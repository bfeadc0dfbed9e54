import { direct, startPipeline, startProduct, type Contestant, type Product } from './contestants.ts';
import { LoadDriver, type MeasuredLoad } from './load/load-driver.ts';
import type { LoadSpec } from './load/load-spec.ts';
import { BenchModel, paces } from './model.ts';

type Load = Pick<LoadSpec, 'concurrency' | 'measureMs'> &
  Partial<Pick<LoadSpec, 'rampMs' | 'warmUpMs' | 'warmUpTurns' | 'senders' | 'apiKeys'>>;

const WARM_UP_MS = 500;
const WARM_TURNS = 2500;

/**
 * What the measures share: the model server, the baselines, the product and a load driver, each in processes of their
 * own.
 */
export class Bench implements AsyncDisposable {
  readonly model: BenchModel;
  readonly driver: LoadDriver;
  readonly direct: Contestant;
  readonly minimal: Contestant;
  readonly durable: Contestant;
  readonly product: Product;
  readonly #parts: AsyncDisposableStack;

  private constructor(
    parts: AsyncDisposableStack,
    running: Pick<Bench, 'model' | 'driver' | 'direct' | 'minimal' | 'durable' | 'product'>,
  ) {
    this.#parts = parts;
    this.model = running.model;
    this.driver = running.driver;
    this.direct = running.direct;
    this.minimal = running.minimal;
    this.durable = running.durable;
    this.product = running.product;
  }

  static async start(): Promise<Bench> {
    await using parts = new AsyncDisposableStack();
    const model = parts.use(await BenchModel.start());
    const driver = parts.use(await LoadDriver.start());
    const minimal = parts.use(await startPipeline(model, { durable: false }));
    const durable = parts.use(await startPipeline(model, { durable: true }));
    const product = parts.use(await startProduct(model));
    return new Bench(parts.move(), { model, driver, direct: direct(model), minimal, durable, product });
  }

  /** Warms up all contestants: cold code is slow, and not equally slow. */
  async warmUp(): Promise<void> {
    for (const contestant of [this.minimal, this.durable, this.product]) {
      await this.full(contestant, { concurrency: 64, measureMs: 200, warmUpTurns: WARM_TURNS });
    }
  }

  /** Measures with zero delay: the maximum of the system. */
  async full(contestant: Contestant, load: Load): Promise<MeasuredLoad> {
    await this.model.setPace(paces.zeroDelay);
    return this.load(contestant, load);
  }

  /** Measures at real pace: turns begin evenly, so that they do not march in step. */
  async paced(contestant: Contestant, load: Load): Promise<MeasuredLoad> {
    await this.model.setPace(paces.real);
    return this.load(contestant, { rampMs: load.concurrency === 1 ? 0 : 600, ...load });
  }

  /** Measures at the pace that was set last. Failures are counted and reported, and do not end the bench. */
  async load(contestant: Contestant, load: Load): Promise<MeasuredLoad> {
    const spec = { rampMs: 0, warmUpMs: WARM_UP_MS, warmUpTurns: 0, senders: undefined, ...contestant.target, ...load };
    const measured = await this.driver.run(spec, contestant.pids);
    if (measured.failures > 0) {
      process.stderr.write(
        `${contestant.name}: ${String(measured.failures)} turns failed, the first one with ${measured.firstFailure ?? '?'}\n`,
      );
    }
    return measured;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

/** `share` 0.5: the median, of ascending values. */
export function percentile(ascending: ArrayLike<number>, share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN;
}

/** Several measurements of the same as one. */
export function together(loads: readonly MeasuredLoad[]): MeasuredLoad {
  const sum = (of: (load: MeasuredLoad) => number): number => loads.reduce((total, load) => total + of(load), 0);
  const turns = sum((load) => load.turns);
  const seconds = sum((load) => load.seconds);
  return {
    turns,
    seconds,
    rate: turns / seconds,
    firstTextMs: loads.flatMap((load) => load.firstTextMs).toSorted((one, other) => one - other),
    cpuPer1000: sum((load) => load.cpuPer1000 * load.turns) / turns,
    failures: sum((load) => load.failures),
    firstFailure: loads.find((load) => load.firstFailure !== null)?.firstFailure ?? null,
  };
}
