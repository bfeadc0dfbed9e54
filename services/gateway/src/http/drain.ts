import { AppError } from '@concierge/contract';

/** Whether the service takes new work. Once draining, always draining. */
export class Drain {
  #draining = false;

  get draining(): boolean {
    return this.#draining;
  }

  start(): void {
    this.#draining = true;
  }

  /** @throws AppError `shutting_down` */
  refuseNewWork(): void {
    if (this.#draining) throw new AppError('shutting_down', undefined, { retryAfterSeconds: 2 });
  }
}
