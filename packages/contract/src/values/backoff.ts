/** How the waits between tries grow. */
export interface BackoffPlan {
  /** After the first try. */
  readonly firstMs: number;
  /** By which each wait is longer than the one before; 2 when it is absent. */
  readonly factor?: number;
  /** No wait grows beyond it, apart from its jitter. */
  readonly maxMs: number;
  /** The share of a wait that is always waited; 1 when it is absent. */
  readonly least?: number;
  /** The share of a wait that is random on top, so that what failed together does not come back together. */
  readonly jitter?: number;
}

/**
 * How long to wait after the try with this number, from 1, in milliseconds that are not rounded. `random` is from 0
 * to 1.
 */
export function backoffMs(
  attempt: number,
  { firstMs, factor = 2, maxMs, least = 1, jitter = 0 }: BackoffPlan,
  random: number = Math.random(),
): number {
  return Math.min(firstMs * factor ** (attempt - 1), maxMs) * (least + jitter * random);
}
