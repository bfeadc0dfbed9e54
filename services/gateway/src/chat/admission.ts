import { AppError } from '@concierge/contract';

/**
 * How many turns may be on their way to the disk at once. What is beyond that is refused while nothing has been accepted yet:
 * a service that takes more than it can write down only gets slower for everybody.
 */
export class Admission {
  readonly #atMost: number;
  #inside = 0;

  constructor(atMost: number) {
    this.#atMost = atMost;
  }

  /** @throws AppError `overloaded`; whatever `accept` throws */
  async run<Result>(accept: () => Promise<Result>): Promise<Result> {
    if (this.#inside >= this.#atMost) throw new AppError('overloaded', undefined, { retryAfterSeconds: 1 });
    this.#inside += 1;
    try {
      return await accept();
    } finally {
      this.#inside -= 1;
    }
  }
}
