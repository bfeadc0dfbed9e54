import { compareWithTarget, describeResult, type Row } from './row.ts';

const WIDTH = 960;
const LABELS = 430;
const TARGET_AT = 700;
const ROW = 24;
const TOP = 34;
/** Bars end here, however far beyond its target a figure is. */
const LONGEST = 1.6;

const escapeXml = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** An SVG with a bar for each figure that has a target: all of them on one line, so that longer is always better. */
export function renderPlot(rows: readonly Row[], title: string): string {
  const judged = rows.filter(({ bound }) => bound !== null);
  const height = TOP + judged.length * ROW + 8;
  const bars = judged.map((row, index) => renderBar(row, TOP + index * ROW));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${String(WIDTH)} ${String(height)}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
<text x="8" y="20" font-size="14" font-weight="bold">${escapeXml(title)}</text>
<text x="${String(TARGET_AT + 4)}" y="20" fill="#666">target</text>
${bars.join('\n')}
<line x1="${String(TARGET_AT)}" y1="8" x2="${String(TARGET_AT)}" y2="${String(height - 8)}" stroke="#333" stroke-dasharray="4 3"/>
</svg>
`;
}

function renderBar(row: Row, y: number): string {
  const share = Math.min(LONGEST, compareWithTarget(row));
  const width = Math.max(1, Math.round(share * (TARGET_AT - LABELS)));
  const colour = row.reached === true ? '#2e8b57' : '#c0792a';
  return [
    `<text x="8" y="${String(y + 15)}">${escapeXml(row.measure)}</text>`,
    `<rect x="${String(LABELS)}" y="${String(y + 3)}" width="${String(width)}" height="${String(ROW - 8)}" fill="${colour}"/>`,
    `<text x="${String(LABELS + 4)}" y="${String(y + 15)}" fill="#fff">${escapeXml(describeResult(row))}</text>`,
  ].join('');
}
