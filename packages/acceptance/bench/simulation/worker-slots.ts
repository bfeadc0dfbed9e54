import { Line } from './stations.ts';
import type { Timeline } from './timeline.ts';

/** The slots of all workers, with one line of wake-ups before them. */
export class WorkerSlots<Turn> {
  readonly #timeline: Timeline;
  readonly #free: number[];
  readonly #start: (turn: Turn, worker: number) => void;
  readonly #wakeups = new Line<Turn>();
  readonly all: number;
  /** The worker that is asked first, so that all are asked alike. */
  #next = 0;
  #taken = 0;
  #changedAt = 0;
  #takenS = 0;

  constructor(
    timeline: Timeline,
    workers: { readonly count: number; readonly slots: number; readonly start: (turn: Turn, worker: number) => void },
  ) {
    this.#timeline = timeline;
    this.#free = Array.from({ length: workers.count }, () => workers.slots);
    this.#start = workers.start;
    this.all = workers.count * workers.slots;
  }

  /** Seconds for which slots were taken, of all together. */
  get takenS(): number {
    return this.#takenS + this.#taken * (this.#timeline.now - this.#changedAt);
  }

  wake(turn: Turn): void {
    this.#wakeups.add(turn);
    this.#fill();
  }

  release(worker: number): void {
    this.#change(worker, 1);
    this.#fill();
  }

  #fill(): void {
    while (this.#taken < this.all && this.#wakeups.length > 0) {
      const turn = this.#wakeups.take();
      const worker = this.#findFree();
      if (turn === undefined) return;
      this.#change(worker, -1);
      this.#start(turn, worker);
    }
  }

  #findFree(): number {
    do this.#next = (this.#next + 1) % this.#free.length;
    while ((this.#free[this.#next] ?? 0) === 0);
    return this.#next;
  }

  #change(worker: number, by: 1 | -1): void {
    this.#takenS = this.takenS;
    this.#changedAt = this.#timeline.now;
    this.#taken -= by;
    this.#free[worker] = (this.#free[worker] ?? 0) + by;
  }
}
