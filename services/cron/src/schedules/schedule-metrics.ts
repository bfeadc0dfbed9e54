import { Counter, type Registry } from 'prom-client';

/** Metrics of schedules; labels name no tenant and no schedule. */
export class ScheduleMetrics {
  readonly #runs: Counter<'outcome'>;
  readonly #failing: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#runs = new Counter({
      name: 'concierge_schedule_runs_total',
      help: 'Runs by what became of them: missed, skipped, or how their turn ended',
      labelNames: ['outcome'],
      registers,
    });
    this.#failing = new Counter({
      name: 'concierge_schedule_failing_total',
      help: 'Runs that failed when those before them had, too: schedules that keep failing',
      registers,
    });
  }

  ended(outcome: string): void {
    this.#runs.inc({ outcome });
  }

  keepsFailing(): void {
    this.#failing.inc();
  }
}
