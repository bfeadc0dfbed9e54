import type { OpenResult } from './open-load.ts';
import type { WebhookResult } from './webhook-load.ts';

/**
 * Senders `<prefix>-<slot>-<n>`, n below `perSlot`: each for so many turns, then the next, and then from the first
 * again.
 */
export interface SenderIdentity {
  readonly prefix: string;
  readonly perSlot: number;
  readonly turnsEach: number;
}

/** What a load driver is to do. Plain data: it goes to a process of its own. */
export interface LoadSpec {
  /** Used in turn: gateways of one system. */
  readonly ports: readonly number[];
  /**
   * `model`: chat completions straight to the model server. `chat`: turns of the product, or of a baseline pipeline.
   */
  readonly kind: 'model' | 'chat';
  /** Used in turn; one tenant each. */
  readonly apiKeys: readonly string[];
  /** Turns in flight, always. */
  readonly concurrency: number;
  /** The first turns are spread over this time, so that they do not march in step. */
  readonly rampMs: number;
  readonly warmUpMs: number;
  /** Measuring begins after so many turns: code that has run a few times only is slow. */
  readonly warmUpTurns: number;
  readonly measureMs: number;
  /** Undefined: a new sender for each turn. */
  readonly senders: SenderIdentity | undefined;
}

export interface LoadResult {
  /** Turns that ended while it measured, and for how long that was. */
  readonly turns: number;
  readonly seconds: number;
  /** Times from the request to the first text, for turns that began while it measured; ms, ascending. */
  readonly firstTextMs: readonly number[];
  readonly failures: number;
  readonly firstFailure: string | null;
}

/** The driver reports that it warmed up, or that it is done. */
export type LoadReport =
  | { readonly kind: 'measuring' }
  | { readonly kind: 'measured'; readonly result: LoadResult }
  | { readonly kind: 'answered'; readonly result: WebhookResult }
  | { readonly kind: 'ended'; readonly result: OpenResult }
  | { readonly kind: 'idle' };
