import { BenchProcess } from './bench-process.ts';

export interface Pace {
  readonly firstMs: number;
  readonly betweenMs: number;
  readonly hang: boolean;
}

/** How fast the model answers, everywhere in the bench. */
export const paces = {
  /** All 20 deltas at once: the system is what takes the time. */
  zeroDelay: { firstMs: 0, betweenMs: 0, hang: false },
  /** The pace of providers: 200 ms to the first delta, 20 ms between. */
  real: { firstMs: 200, betweenMs: 20, hang: false },
  never: { firstMs: 0, betweenMs: 0, hang: true },
} as const satisfies Record<string, Pace>;

/** The bench's model server. */
export class BenchModel implements AsyncDisposable {
  readonly #process: BenchProcess;

  private constructor(process: BenchProcess) {
    this.#process = process;
  }

  static async start(): Promise<BenchModel> {
    return new BenchModel(await BenchProcess.start('model-main.ts'));
  }

  get port(): number {
    return this.#process.port;
  }

  get pid(): number {
    return this.#process.pid;
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.port)}/v1`;
  }

  async setPace(pace: Pace): Promise<void> {
    const answer = await fetch(`http://127.0.0.1:${String(this.port)}/pace`, { method: 'POST', body: JSON.stringify(pace) });
    if (!answer.ok) throw new Error(`the model server answers ${String(answer.status)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }
}
