/** One line of the table. Figures are numbers, so that `--json` can be compared by a program. */
export interface Row {
  readonly measure: string;
  readonly unit: string;
  /** What the ratio is taken against, measured in the same run. */
  readonly baseline: { readonly name: string; readonly value: number } | null;
  readonly product: number;
  /** Product ÷ baseline, or product − baseline where the target is a difference. */
  readonly compared: number | null;
  readonly comparedAs: 'ratio' | 'difference' | null;
  readonly target: string | null;
  readonly reached: boolean | null;
}

interface Measured {
  readonly measure: string;
  readonly unit: string;
  readonly product: number;
}

export interface Bound {
  readonly atLeast?: number;
  readonly atMost?: number;
}

function boundText({ atLeast, atMost }: Bound, unit: string): string {
  return atLeast === undefined ? `≤ ${String(atMost)}${unit}` : `≥ ${String(atLeast)}${unit}`;
}

function isWithin(value: number, { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY }: Bound): boolean {
  return value >= atLeast && value <= atMost;
}

export function ratioRow(measured: Measured, baseline: { readonly name: string; readonly value: number }, bound: Bound | null): Row {
  const compared = measured.product / baseline.value;
  const judged = bound === null ? { target: null, reached: null } : { target: boundText(bound, ' ×'), reached: isWithin(compared, bound) };
  return { ...measured, baseline, compared, comparedAs: 'ratio', ...judged };
}

export function differenceRow(measured: Measured, baseline: { readonly name: string; readonly value: number }, bound: Bound | null): Row {
  const compared = measured.product - baseline.value;
  const judged =
    bound === null
      ? { target: null, reached: null }
      : { target: boundText(bound, ` ${measured.unit} more`), reached: isWithin(compared, bound) };
  return { ...measured, baseline, compared, comparedAs: 'difference', ...judged };
}

/** Where the figure itself has a target. */
export function absoluteRow(measured: Measured, bound: Bound | null): Row {
  const judged =
    bound === null
      ? { target: null, reached: null }
      : { target: boundText(bound, ` ${measured.unit}`), reached: isWithin(measured.product, bound) };
  return { ...measured, baseline: null, compared: null, comparedAs: null, ...judged };
}
