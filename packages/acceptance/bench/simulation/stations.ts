import type { Timeline } from './timeline.ts';

/** First in, first out. An array alone moves all of its items for each that is taken. */
export class Line<Item> {
  #items: Item[] = [];
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  add(item: Item): void {
    this.#items.push(item);
  }

  take(): Item | undefined {
    const item = this.#items[this.#first];
    if (this.#first < this.#items.length) this.#first += 1;
    if (this.#first > 1000 && this.#first * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}

/** Servers with one line before them: the event loop of a process (one), the cores of a machine. */
export class Station {
  readonly name: string;
  readonly servers: number;
  readonly #timeline: Timeline;
  /** Work needs one of these, too, as long as it lasts. */
  readonly #cores: Station | undefined;
  readonly #waiting = new Line<{ readonly seconds: number; readonly after: () => void }>();
  #busy = 0;
  #workedS = 0;

  constructor(
    timeline: Timeline,
    { name, servers = 1, cores }: { readonly name: string; readonly servers?: number; readonly cores?: Station | undefined },
  ) {
    this.name = name;
    this.servers = servers;
    this.#timeline = timeline;
    this.#cores = cores;
  }

  /** Seconds of work that were done, of all its servers. */
  get workedS(): number {
    return this.#workedS;
  }

  serve(seconds: number, then: () => void): void {
    if (this.#busy < this.servers) this.#begin(seconds, then);
    else this.#waiting.add({ seconds, after: then });
  }

  #begin(seconds: number, then: () => void): void {
    this.#busy += 1;
    const end = (): void => {
      this.#busy -= 1;
      this.#workedS += seconds;
      const next = this.#waiting.take();
      if (next !== undefined) this.#begin(next.seconds, next.after);
      then();
    };
    if (this.#cores === undefined) this.#timeline.after(seconds, end);
    else this.#cores.serve(seconds, end);
  }
}

/** The log of one process on a disk: one sync at a time; those that come during one share the next. */
export class SyncedLog {
  readonly #timeline: Timeline;
  readonly #syncS: () => number;
  #waiting: (() => void)[] = [];
  #isSyncing = false;
  #workedS = 0;
  #syncs = 0;

  constructor(timeline: Timeline, syncS: () => number) {
    this.#timeline = timeline;
    this.#syncS = syncS;
  }

  get workedS(): number {
    return this.#workedS;
  }

  get syncs(): number {
    return this.#syncs;
  }

  sync(then: () => void): void {
    this.#waiting.push(then);
    if (!this.#isSyncing) this.#begin();
  }

  #begin(): void {
    const together = this.#waiting;
    this.#waiting = [];
    this.#isSyncing = true;
    const seconds = this.#syncS();
    this.#timeline.after(seconds, () => {
      this.#isSyncing = false;
      this.#workedS += seconds;
      this.#syncs += 1;
      if (this.#waiting.length > 0) this.#begin();
      for (const then of together) then();
    });
  }
}
