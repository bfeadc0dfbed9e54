import { routes, SeriesRange, WaitReason, type SeriesPoint } from '@concierge/contract';
import { memo, useEffect, useRef, type ReactNode } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Formats } from '../../../src/formats.ts';
import { Choice } from '../parts/choice.tsx';
import { Section } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { SLOW_MS } from './shared.tsx';
import { useFilters } from './use-filters.ts';

/** Charts with one key are read together: what is pointed at in one is shown in all. */
const CURSOR_KEY = 'operate';
const HEIGHT = 150;
/** What the longest time of day needs, such as `10:36:30 PM`. */
const TICK_SPACE = 88;

interface Line {
  readonly label: string;
  /** A colour of the theme. */
  readonly colour: string;
  readonly isDashed?: boolean;
  readonly read: (point: SeriesPoint) => number | null;
}

interface ChartProps {
  readonly title: string;
  readonly points: readonly SeriesPoint[];
  readonly lines: readonly Line[];
  readonly write: (value: number) => string;
}

/**
 * How it was: what waited, how long, how long turns ran, and what failed. Drawn anew with its own figures alone, or
 * what is pointed at would be lost.
 */
export const Charts = memo(function Charts(): ReactNode {
  const { charts: words, reasons } = useWords().operate;
  const { read, change } = useFilters();
  const formats = useFormats();
  const range = SeriesRange.options.find((known) => known === read('range')) ?? '1h';
  const series = useRead(routes.getSeries, { query: { range } }, { everyMs: SLOW_MS });
  const write = { count: (value: number) => formats.number(value), time: (value: number) => formats.duration(value) };
  return (
    <Section title={words.title}>
      <Choice
        label={words.range}
        value={range}
        options={SeriesRange.options.map((value) => ({ value, label: words.ranges[value] }))}
        onChange={(chosen) => change({ range: chosen === '1h' ? '' : chosen })}
      />
      <Loaded query={series}>
        {({ points }) =>
          points.length === 0 ? (
            <Empty title={words.none}>{words.noneNext}</Empty>
          ) : (
            <div className="grid gap-3 lg:grid-cols-2">
              <Chart
                title={words.waiting}
                points={points}
                write={write.count}
                lines={[
                  { label: words.waiting, colour: '--warn', read: ({ waiting }) => waiting },
                  { label: words.running, colour: '--primary', read: ({ running }) => running },
                  ...listReasons(points, reasons),
                ]}
              />
              <Chart
                title={words.wait}
                points={points}
                write={write.time}
                lines={[
                  { label: 'p95', colour: '--warn', read: ({ waitP95Ms }) => waitP95Ms },
                  { label: 'p50', colour: '--primary', read: ({ waitP50Ms }) => waitP50Ms },
                ]}
              />
              <Chart
                title={words.run}
                points={points}
                write={write.time}
                lines={[
                  { label: 'p95', colour: '--warn', read: ({ runP95Ms }) => runP95Ms },
                  { label: 'p50', colour: '--primary', read: ({ runP50Ms }) => runP50Ms },
                ]}
              />
              <Chart
                title={words.ended}
                points={points}
                write={write.count}
                lines={[
                  { label: words.failed, colour: '--danger', read: ({ failed }) => failed },
                  { label: words.all, colour: '--primary', read: ({ ended }) => ended },
                ]}
              />
            </div>
          )
        }
      </Loaded>
    </Section>
  );
});

/** A line for each reason for which anything waited. */
function listReasons(points: readonly SeriesPoint[], names: Readonly<Record<WaitReason, string>>): Line[] {
  const found = WaitReason.options.filter((reason) => points.some(({ waitingBy }) => waitingBy[reason] !== undefined));
  return found.map((reason) => ({
    label: names[reason],
    colour: '--muted-foreground',
    isDashed: true,
    read: ({ waitingBy }) => waitingBy[reason] ?? 0,
  }));
}

/** `seconds`: equally far from each other. */
function writeTimes(formats: Formats, seconds: readonly number[]): string[] {
  const [first = 0, second = first] = seconds;
  return seconds.map((at) => formats.tick(at * 1000, (second - first) * 1000));
}

/** With its last and highest values in words: a picture alone says nothing to a screen reader. */
function Chart({ title, points, lines, write }: ChartProps): ReactNode {
  const words = useWords().operate.charts;
  const formats = useFormats();
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const style = getComputedStyle(element);
    const colour = (name: string): string => style.getPropertyValue(name);
    const axis = { stroke: colour('--muted-foreground'), grid: { stroke: colour('--border'), width: 1 } };
    const toOptions = (): UPlot.Options => ({
      width: element.clientWidth,
      height: HEIGHT,
      cursor: { sync: { key: CURSOR_KEY } },
      legend: { live: true },
      scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] } },
      axes: [
        {
          ...axis,
          space: TICK_SPACE,
          values: (_plot, splits) => writeTimes(formats, splits),
        },
        { ...axis, size: 72, values: (_plot, splits) => splits.map(write) },
      ],
      series: [
        {
          label: words.time,
          value: (_plot: UPlot, atS: number | null) => (atS === null ? '–' : formats.time(new Date(atS * 1000).toISOString())),
        },
        ...lines.map((line) => ({
          label: line.label,
          stroke: colour(line.colour),
          width: line.isDashed === true ? 1 : 2,
          ...(line.isDashed === true && { dash: [4, 4] }),
          value: (_plot: UPlot, value: number | null) => (value === null ? '–' : write(value)),
        })),
      ],
    });
    const times = points.map(({ at }) => Date.parse(at) / 1000);
    const plot = new UPlot(toOptions(), [times, ...lines.map(({ read }) => points.map(read))], element);
    const watch = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [points, lines, write, formats, words]);
  const said = lines.map(({ label, read }) => {
    const values = points.flatMap((point) => read(point) ?? []);
    return words.said(label, write(values.at(-1) ?? 0), write(Math.max(0, ...values)));
  });
  return (
    <figure className="min-w-0 rounded-xl border bg-card p-3">
      <figcaption className="mb-1 text-sm font-medium">
        {title}
        <span className="sr-only">{said.join(' ')}</span>
      </figcaption>
      <div ref={box} aria-hidden="true" className="min-w-0 overflow-hidden text-xs" />
    </figure>
  );
}
