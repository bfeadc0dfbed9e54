/** What one call of an endpoint that works through a list a few at a time has done, or would do. */
export interface BulkStep {
  readonly count: number;
  readonly tenants: readonly { readonly tenantId: string; readonly count: number }[];
  /** What is left out, by its reason. */
  readonly skipped: readonly { readonly reason: string; readonly count: number }[];
  /** Null: nothing more follows. */
  readonly nextCursor: string | null;
}

export type BulkTotals = Omit<BulkStep, 'nextCursor'>;

export interface BulkOptions {
  /** Ends the run between two steps; what has been done stays. */
  readonly signal: AbortSignal;
  /** Called between two steps; resolves when the next one may begin. */
  readonly pause?: (signal: AbortSignal) => Promise<void>;
  /** Called after each step with everything so far. */
  readonly onTotals?: (totals: BulkTotals) => void;
}

const noTotals: BulkTotals = { count: 0, tenants: [], skipped: [] };

/**
 * Asks step by step, from the first to the last or until the signal.
 * @returns everything that was done. Rejects with what a step rejects with.
 */
export async function runInSteps(
  step: (cursor: string | undefined) => Promise<BulkStep>,
  { signal, pause, onTotals }: BulkOptions,
): Promise<BulkTotals> {
  let totals = noTotals;
  for (let cursor: string | null | undefined; cursor !== null;) {
    if (signal.aborted) return totals;
    if (cursor !== undefined) await pause?.(signal);
    if (signal.aborted) return totals;
    const done: BulkStep = await step(cursor);
    totals = addTotals(totals, done);
    onTotals?.(totals);
    cursor = done.nextCursor;
  }
  return totals;
}

function addTotals(one: BulkTotals, other: BulkTotals): BulkTotals {
  return {
    count: one.count + other.count,
    tenants: addCounts([...one.tenants, ...other.tenants], 'tenantId'),
    skipped: addCounts([...one.skipped, ...other.skipped], 'reason'),
  };
}

/** Adds up entries of the same name, the largest first. */
function addCounts<Name extends string>(
  entries: readonly ({ readonly [Key in Name]: string } & { readonly count: number })[],
  name: Name,
): ({ readonly [Key in Name]: string } & { readonly count: number })[] {
  const sums = new Map<string, (typeof entries)[number]>();
  for (const entry of entries) sums.set(entry[name], { ...entry, count: entry.count + (sums.get(entry[name])?.count ?? 0) });
  return [...sums.values()].toSorted((one, other) => other.count - one.count);
}
