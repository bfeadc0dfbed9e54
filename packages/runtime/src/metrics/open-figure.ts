import { createRequire } from 'node:module';
import type * as PromClient from 'prom-client';
import type { Counter, Gauge, Histogram, MetricConfiguration, Registry } from 'prom-client';
import { figures, type Figure, type FigureName } from './figures.ts';

const require = createRequire(import.meta.url);

type NamesOfKind<Wanted extends Figure['kind']> = {
  [Name in FigureName]: (typeof figures)[Name]['kind'] extends Wanted ? Name : never;
}[FigureName];
type CounterName = NamesOfKind<'counter'>;
type GaugeName = NamesOfKind<'gauge'>;
type HistogramName = NamesOfKind<'histogram'>;

/** Values of labels that only the configuration knows, such as the models of providers.json. */
type KnownValues = Readonly<Record<string, readonly string[]>>;

/**
 * Opens declared figures on a service's registry, each once: several parts of a service may count into one. Every
 * combination of values that is known exists from then on, at zero: an increase over a series that begins with its
 * first event does not show that event.
 */
export class Figures {
  readonly #registry: Registry;
  // On demand: a command has no metrics.
  readonly #library: typeof PromClient = require('prom-client');

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  counter(name: CounterName, known: KnownValues = {}): Counter {
    const opened = this.#registry.getSingleMetric(name);
    if (opened instanceof this.#library.Counter) return opened;
    const counter = new this.#library.Counter(this.#configure(name));
    for (const labels of listSeries(figures[name], known)) counter.inc(labels, 0);
    return counter;
  }

  /** A counter of what is counted elsewhere, read when it is asked for. */
  countElsewhere(name: CounterName, read: () => readonly { readonly labels: Record<string, string>; readonly value: number }[]): void {
    new this.#library.Counter({
      ...this.#configure(name),
      collect() {
        this.reset();
        for (const { labels, value } of read()) this.inc(labels, value);
      },
    });
  }

  /** `measure` is asked with every scrape. */
  gauge(name: GaugeName, measure?: (gauge: Gauge) => void): Gauge {
    const gauge = new this.#library.Gauge({
      ...this.#configure(name),
      ...(measure !== undefined && {
        collect() {
          measure(this);
        },
      }),
    });
    for (const labels of listSeries(figures[name])) gauge.set(labels, 0);
    return gauge;
  }

  histogram(name: HistogramName): Histogram {
    const histogram = new this.#library.Histogram({ ...this.#configure(name), buckets: [...figures[name].buckets] });
    for (const labels of listSeries(figures[name])) histogram.zero(labels);
    return histogram;
  }

  #configure(name: FigureName): MetricConfiguration<string> {
    const { help, labels = {}, aggregator }: Figure = figures[name];
    const facts = { name, help, labelNames: Object.keys(labels), registers: [this.#registry] };
    return { ...facts, ...(aggregator !== undefined && { aggregator }) };
  }
}

/** Every combination of the values that are known; none while those of one label are not. */
export function listSeries({ labels = {} }: Figure, known: KnownValues = {}): Record<string, string>[] {
  let series: Record<string, string>[] = [{}];
  for (const [label, declared] of Object.entries(labels)) {
    const values = declared ?? known[label] ?? [];
    series = series.flatMap((one) => values.map((value) => ({ ...one, [label]: value })));
  }
  return series;
}
