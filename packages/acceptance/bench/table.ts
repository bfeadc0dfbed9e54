import type { Row } from './row.ts';

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

/** A Markdown table that can also be read as it is. */
export function renderTable(rows: readonly Row[]): string {
  const lines = [[...titles], ...rows.map(cells)];
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const render = (line: readonly string[]): string => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  const [head = [], ...rest] = lines;
  return [render(head), rule, ...rest.map(render)].join('\n');
}
