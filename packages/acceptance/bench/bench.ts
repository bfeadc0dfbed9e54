import { direct, startPipeline, startProduct, type Contestant, type Product } from './contestants.ts';
import { LoadDriver, type MeasuredLoad } from './load/load-driver.ts';
import { BenchModel, paces } from './model.ts';

/** What the measures share: the model server, the baselines, the product and a load driver, each in processes of their own. */
export class Bench implements AsyncDisposable {
  readonly model: BenchModel;
  readonly driver: LoadDriver;
  readonly direct: Contestant;
  readonly minimal: Contestant;
  readonly durable: Contestant;
  readonly product: Product;
  readonly #parts: AsyncDisposableStack;

  private constructor(parts: AsyncDisposableStack, running: Pick<Bench, 'model' | 'driver' | 'direct' | 'minimal' | 'durable' | 'product'>) {
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

  /** Zero delay: what the system can do at most. */
  async full(contestant: Contestant, concurrency: number, measureMs: number): Promise<MeasuredLoad> {
    await this.model.setPace(paces.zeroDelay);
    return this.#load(contestant, { concurrency, rampMs: 0, warmUpMs: 700, measureMs });
  }

  /** Real pace: turns begin evenly, so that they do not march in step. */
  async paced(contestant: Contestant, concurrency: number, measureMs: number): Promise<MeasuredLoad> {
    await this.model.setPace(paces.real);
    return this.#load(contestant, { concurrency, rampMs: concurrency === 1 ? 0 : 600, warmUpMs: 600, measureMs });
  }

  async #load(
    contestant: Contestant,
    load: { readonly concurrency: number; readonly rampMs: number; readonly warmUpMs: number; readonly measureMs: number },
  ): Promise<MeasuredLoad> {
    const measured = await this.driver.run({ ...contestant.target, ...load, senders: undefined }, contestant.pids);
    if (measured.failures > 0) {
      process.stderr.write(`${contestant.name}: ${String(measured.failures)} turns failed, the first one with ${measured.firstFailure ?? '?'}\n`);
    }
    return measured;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

/** `share` 0.5: the median, of ascending values. */
export function percentile(ascending: readonly number[], share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN;
}
