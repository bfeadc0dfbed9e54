/** Simulated time, in seconds: what is planned happens in order of its time, of its planning where times are equal. */
export class Timeline {
  /** A binary heap; three arrays and no objects: an hour of a large deployment plans ten million times. */
  readonly #times: number[] = [];
  readonly #orders: number[] = [];
  readonly #actions: (() => void)[] = [];
  #planned = 0;
  #now = 0;

  get now(): number {
    return this.#now;
  }

  after(seconds: number, act: () => void): void {
    this.at(this.#now + seconds, act);
  }

  at(time: number, act: () => void): void {
    const order = (this.#planned += 1);
    let place = this.#times.length;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#isLater(parent, time, order)) break;
      this.#move(parent, place);
      place = parent;
    }
    this.#put(place, time, order, act);
  }

  /** Until nothing is planned, or that time is reached: what is planned after it does not happen. */
  run(until = Number.POSITIVE_INFINITY): void {
    for (let time = this.#times[0]; time !== undefined && time <= until; time = this.#times[0]) {
      const act = this.#takeFirst();
      this.#now = time;
      act();
    }
    if (until !== Number.POSITIVE_INFINITY) this.#now = until;
  }

  #takeFirst(): () => void {
    const [first] = this.#actions;
    const [time, order, act] = [this.#times.pop(), this.#orders.pop(), this.#actions.pop()];
    if (first === undefined || time === undefined || order === undefined || act === undefined) throw new Error('nothing is planned');
    if (this.#times.length > 0) this.#sink(time, order, act);
    return first;
  }

  #sink(time: number, order: number, act: () => void): void {
    const { length } = this.#times;
    let place = 0;
    for (let child = 1; child < length; child = 2 * place + 1) {
      const other = child + 1;
      const earlier = other < length && this.#isLater(child, this.#times[other] ?? 0, this.#orders[other] ?? 0) ? other : child;
      if (this.#isLater(earlier, time, order)) break;
      this.#move(earlier, place);
      place = earlier;
    }
    this.#put(place, time, order, act);
  }

  #isLater(place: number, time: number, order: number): boolean {
    const there = this.#times[place] ?? 0;
    return there > time || (there === time && (this.#orders[place] ?? 0) > order);
  }

  #move(from: number, to: number): void {
    const act = this.#actions[from];
    if (act !== undefined) this.#put(to, this.#times[from] ?? 0, this.#orders[from] ?? 0, act);
  }

  // eslint-disable-next-line max-params -- one entry of three arrays
  #put(place: number, time: number, order: number, act: () => void): void {
    this.#times[place] = time;
    this.#orders[place] = order;
    this.#actions[place] = act;
  }
}
