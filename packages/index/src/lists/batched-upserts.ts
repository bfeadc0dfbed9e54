import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '@concierge/contract';
import type { SessionPut } from '../types.ts';

interface Waiting extends PromiseWithResolvers<void> {
  readonly put: SessionPut;
}

const GROUP_MAX = 128;

/**
 * Turns that end at about the same time are written together: those of one turn of the event loop, and those that came
 * while the group before was being written. One transaction costs nearly the same for one of them as for ten.
 */
export class BatchedUpserts {
  readonly #write: (puts: readonly SessionPut[]) => Promise<void>;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(write: (puts: readonly SessionPut[]) => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when it is written. */
  async put(put: SessionPut): Promise<void> {
    const waiting = { put, ...Promise.withResolvers<void>() };
    this.#waiting.push(waiting);
    const running = this.#running ?? this.#writeAll();
    this.#running = running;
    return waiting.promise;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      await nextTurn();
      await this.#writeGroup(this.#waiting.splice(0, GROUP_MAX));
    }
    this.#running = undefined;
  }

  /**
   * One that cannot be written does not take the others with it; a database that cannot be reached is not asked for
   * each of them.
   */
  async #writeGroup(group: readonly Waiting[]): Promise<void> {
    try {
      await this.#write(group.map(({ put }) => put));
      for (const { resolve } of group) resolve();
    } catch (error) {
      if (group.length > 1 && !(error instanceof AppError)) for (const one of group) await this.#writeGroup([one]);
      else for (const { reject } of group) reject(error);
    }
  }
}
