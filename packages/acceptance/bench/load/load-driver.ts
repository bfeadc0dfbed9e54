import { on } from 'node:events';
import { BenchProcess } from '../bench-process.ts';
import { cpuSecondsOfAll } from '../process-figures.ts';
import type { LoadReport, LoadResult, LoadSpec } from './load-spec.ts';
import type { OpenResult, OpenSpec } from './open-load.ts';
import type { HoldSpec } from './open-streams.ts';
import type { WebhookResult, WebhookSpec } from './webhook-load.ts';

export interface MeasuredLoad extends LoadResult {
  /** Turns per second. */
  readonly rate: number;
  /** Processor seconds per 1,000 turns of the watched processes. */
  readonly cpuPer1000: number;
}

/** The load driver as seen from the bench: one at a time, in a process of its own. */
export class LoadDriver implements AsyncDisposable {
  readonly #process: BenchProcess;
  /** Kept until they are asked for. */
  readonly #reports: AsyncIterator<unknown[]>;

  private constructor(process: BenchProcess) {
    this.#process = process;
    this.#reports = on(process.child, 'message', { close: ['exit'] });
  }

  static async start(): Promise<LoadDriver> {
    return new LoadDriver(await BenchProcess.start('load/load-main.ts'));
  }

  /** Runs the load to its end; `watched`: processes whose CPU time is taken meanwhile. */
  async run(spec: LoadSpec, watched: readonly number[] = []): Promise<MeasuredLoad> {
    const { result, spent } = await this.#measure(spec, () => cpuSecondsOfAll(watched));
    return { ...result, rate: result.turns / result.seconds, cpuPer1000: (spent / result.turns) * 1000 };
  }

  /** Runs the load to its end; what a counter has counted meanwhile, for each turn. */
  async count(spec: LoadSpec, counter: () => Promise<number>): Promise<number> {
    const { result, spent } = await this.#measure(spec, counter);
    return spent / result.turns;
  }

  /** Sends turns at their times; `counter` counts what was spent while it measured. */
  async open<Spent>(
    spec: OpenSpec,
    counter: () => Spent,
  ): Promise<{ readonly result: OpenResult; readonly before: Spent; readonly after: Spent }> {
    this.#process.child.send({ open: spec });
    await this.#next('measuring');
    const before = counter();
    const { result } = await this.#next('ended');
    const after = counter();
    await this.#next('idle');
    return { result, before, after };
  }

  /** Opens streams that stay open until the driver is disposed of. */
  async hold(spec: HoldSpec): Promise<void> {
    this.#process.child.send({ hold: spec });
    await this.#next('idle');
  }

  /** Brings deliveries until the time is over, or all are answered. */
  async webhooks(spec: WebhookSpec): Promise<WebhookResult> {
    this.#process.child.send({ webhooks: spec });
    const { result } = await this.#next('answered');
    await this.#next('idle');
    return result;
  }

  get pid(): number {
    return this.#process.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }

  async #measure(
    spec: LoadSpec,
    counter: () => number | Promise<number>,
  ): Promise<{ readonly result: LoadResult; readonly spent: number }> {
    this.#process.child.send({ load: spec });
    await this.#next('measuring');
    const before = await counter();
    const { result } = await this.#next('measured');
    const spent = (await counter()) - before;
    await this.#next('idle');
    if (result.turns === 0) throw new Error(`no turn came to its end: ${result.firstFailure ?? 'no answer'}`);
    return { result, spent };
  }

  async #next<Kind extends LoadReport['kind']>(kind: Kind): Promise<Extract<LoadReport, { kind: Kind }>> {
    const next = await this.#reports.next();
    if (next.done === true) throw new Error('the load driver is gone');
    const given = next.value[0] as LoadReport; // eslint-disable-line typescript/no-unsafe-type-assertion -- both ends are this bench
    if (given.kind !== kind) throw new Error(`the load driver sent ${given.kind} instead of ${kind}`);
    return given as Extract<LoadReport, { kind: Kind }>; // eslint-disable-line typescript/no-unsafe-type-assertion -- looked at above
  }
}
