import { z } from 'zod';

/** Upper ends of the buckets in which times are counted; what is longer is in one more. */
export const bucketEndsMs = [
  10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000, 120_000, 300_000, 900_000, 1_800_000,
] as const;

const Buckets = z.array(z.int().nonnegative()).max(bucketEndsMs.length + 1);
const count = z.int().nonnegative();
const ProviderCounts = z.object({ calls: count, failures: count, tookMs: Buckets });

/** What a worker has done since it started. */
export const TurnCounts = z.object({
  ended: count,
  failed: count,
  waitedMs: Buckets,
  ranMs: Buckets,
  providers: z.record(z.string().max(200), ProviderCounts),
});
export type TurnCounts = z.infer<typeof TurnCounts>;

export const noCounts: TurnCounts = { ended: 0, failed: 0, waitedMs: [], ranMs: [], providers: {} };

/** Each bucket by itself; `sign` -1: what was added since. Never less than nothing. */
function addBuckets(one: readonly number[], other: readonly number[], sign: 1 | -1): number[] {
  const length = Math.max(one.length, other.length);
  return Array.from({ length }, (_, index) => Math.max(0, (one[index] ?? 0) + sign * (other[index] ?? 0)));
}

export function addCounts(one: TurnCounts, other: TurnCounts, sign: 1 | -1 = 1): TurnCounts {
  const add = (left: number, right: number): number => Math.max(0, left + sign * right);
  const names = new Set([...Object.keys(one.providers), ...Object.keys(other.providers)]);
  const none = { calls: 0, failures: 0, tookMs: [] };
  return {
    ended: add(one.ended, other.ended),
    failed: add(one.failed, other.failed),
    waitedMs: addBuckets(one.waitedMs, other.waitedMs, sign),
    ranMs: addBuckets(one.ranMs, other.ranMs, sign),
    providers: Object.fromEntries(
      [...names].map((name) => {
        const [left, right] = [one.providers[name] ?? none, other.providers[name] ?? none];
        const calls = add(left.calls, right.calls);
        return [
          name,
          { calls, failures: add(left.failures, right.failures), tookMs: addBuckets(left.tookMs, right.tookMs, sign) },
        ] as const;
      }),
    ),
  };
}

/** The time that this share of all took at most, as far as buckets tell; null: there is none. */
export function estimateQuantile(buckets: readonly number[], share: number): number | null {
  const all = buckets.reduce((sum, some) => sum + some, 0);
  if (all === 0) return null;
  let before = 0;
  for (const [index, some] of buckets.entries()) {
    const fromMs = bucketEndsMs[index - 1] ?? 0;
    const endMs = bucketEndsMs[index] ?? fromMs;
    if (some > 0 && before + some >= all * share) return Math.round(fromMs + ((endMs - fromMs) * (all * share - before)) / some);
    before += some;
  }
  return bucketEndsMs.at(-1) ?? null;
}
