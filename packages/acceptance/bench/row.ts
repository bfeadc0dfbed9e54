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
  readonly bound: Bound | null;
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
  if (atLeast !== undefined && atMost !== undefined) return `${String(atLeast)} to ${String(atMost)}${unit}`;
  return atLeast === undefined ? `≤ ${String(atMost)}${unit}` : `≥ ${String(atLeast)}${unit}`;
}

function isWithin(value: number, { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY }: Bound): boolean {
  return value >= atLeast && value <= atMost;
}

export function ratioRow(measured: Measured, baseline: { readonly name: string; readonly value: number }, bound: Bound | null): Row {
  const compared = measured.product / baseline.value;
  const judged = bound === null ? { target: null, reached: null } : { target: boundText(bound, ' ×'), reached: isWithin(compared, bound) };
  return { ...measured, baseline, compared, comparedAs: 'ratio', bound, ...judged };
}

export function differenceRow(measured: Measured, baseline: { readonly name: string; readonly value: number }, bound: Bound | null): Row {
  const compared = measured.product - baseline.value;
  const judged =
    bound === null
      ? { target: null, reached: null }
      : { target: boundText(bound, ` ${measured.unit} more`), reached: isWithin(compared, bound) };
  return { ...measured, baseline, compared, comparedAs: 'difference', bound, ...judged };
}

/** Where the figure itself has a target. */
export function absoluteRow(measured: Measured, bound: Bound | null): Row {
  const judged =
    bound === null
      ? { target: null, reached: null }
      : { target: boundText(bound, ` ${measured.unit}`), reached: isWithin(measured.product, bound) };
  return { ...measured, baseline: null, compared: null, comparedAs: null, bound, ...judged };
}

const titles = ['measure', 'baseline', 'product', 'ratio', 'target', 'reached'] as const;

function figure(value: number): string {
  if (Math.abs(value) >= 100) return String(Math.round(value));
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function comparison({ compared, comparedAs, unit }: Row): string {
  if (compared === null) return '';
  return comparedAs === 'ratio' ? `${compared.toFixed(2)} ×` : `${compared < 0 ? '−' : '+'}${figure(Math.abs(compared))} ${unit}`;
}

function cells(row: Row): string[] {
  const baseline = row.baseline === null ? '' : `${figure(row.baseline.value)} (${row.baseline.name})`;
  const reached = row.reached === null ? '' : row.reached ? 'yes' : 'no';
  return [`${row.measure} [${row.unit}]`, baseline, figure(row.product), comparison(row), row.target ?? '', reached];
}

/** The figure that the target is about. */
function judgedFigure({ compared, product }: Row): number {
  return compared ?? product;
}

/** 1 where the target is just reached, more beyond it, whether the target is a least or a most. */
export function compareWithTarget(row: Row): number {
  const figureOf = Math.max(judgedFigure(row), Number.MIN_VALUE);
  const { atLeast, atMost } = row.bound ?? {};
  if (atLeast === undefined && atMost === undefined) return 0;
  const beyond = [
    atLeast === undefined ? Number.POSITIVE_INFINITY : figureOf / atLeast,
    atMost === undefined ? Number.POSITIVE_INFINITY : atMost / figureOf,
  ];
  return Math.min(...beyond);
}

/** What was measured, and the target: `0.62 ×, ≥ 0.6 ×`. */
export function describeResult(row: Row): string {
  return `${comparison(row) || `${figure(row.product)} ${row.unit}`}, ${row.target ?? 'no target'}`;
}

/** Of several runs, for each line the run in the middle. */
export function takeMedians(runs: readonly (readonly Row[])[]): Row[] {
  const lines = Map.groupBy(runs.flat(), ({ measure, baseline }) => `${measure} ${baseline?.name ?? ''}`);
  return [...lines.values()].flatMap((same) => {
    const sorted = same.toSorted((one, other) => judgedFigure(one) - judgedFigure(other));
    return sorted.slice(Math.floor((sorted.length - 1) / 2)).slice(0, 1);
  });
}

/** A Markdown table that can also be read as it is. */
export function renderTable(rows: readonly Row[]): string {
  const lines = [[...titles], ...rows.map(cells)];
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const render = (line: readonly string[]): string => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  const [head = [], ...rest] = lines;
  return [render(head), rule, ...rest.map(render)].join('\n');
}
