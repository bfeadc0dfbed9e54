/** What a load driver is to do. Plain data: it goes to a process of its own. */
export interface LoadSpec {
  readonly port: number;
  /** `model`: chat completions straight to the model server. `chat`: turns of the product, or of a baseline pipeline. */
  readonly kind: 'model' | 'chat';
  /** Used in turn; one tenant each. */
  readonly apiKeys: readonly string[];
  /** Turns in flight, always. */
  readonly concurrency: number;
  /** Over which the first turns are spread, so that they do not march in step. */
  readonly rampMs: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Senders to take turns from, each free for one turn at a time: `<senders>-<slot>`. Undefined: a new sender every few turns. */
  readonly senders: string | undefined;
}

export interface LoadResult {
  /** Turns that ended while it measured, and for how long that was. */
  readonly turns: number;
  readonly seconds: number;
  /** From the request to the first text, of turns that began while it measured; ms, ascending. */
  readonly firstTextMs: readonly number[];
  readonly failures: number;
  readonly firstFailure: string | null;
}

/** From the driver: it warmed up, or it is done. */
export type LoadReport = { readonly kind: 'measuring' } | { readonly kind: 'measured'; readonly result: LoadResult } | { readonly kind: 'idle' };
