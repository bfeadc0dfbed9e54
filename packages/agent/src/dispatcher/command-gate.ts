import { limits } from '@concierge/contract';
import type { CommandCaller } from '../tools/runtime/runtime-access.ts';

/** Why a nested call stops when the command that made it is over. */
export class CommandEnded extends Error {
  override readonly name = 'CommandEnded';
}

/** While a command runs: its door to the tools. Disposed, it stops the calls that are still under way and waits for them. */
export class CommandGate implements AsyncDisposable {
  readonly token: string;
  readonly caller: CommandCaller;
  /** 1 for a command that the model asked for; one more for each that was started through the dispatcher. */
  readonly depth: number;
  readonly #ended = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #waiting: (() => void)[] = [];
  readonly #onEnd: () => void;
  #free: number = limits.nestedCallsAtOnce;
  #made = 0;

  constructor(caller: CommandCaller, place: { readonly token: string; readonly depth: number; readonly onEnd: () => void }) {
    this.caller = caller;
    this.token = place.token;
    this.depth = place.depth;
    this.#onEnd = place.onEnd;
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Derived from the command's call, so that no two calls of a turn have the same. */
  nextCallId(): string {
    this.#made += 1;
    return `${this.caller.callId}/${String(this.#made)}`;
  }

  /** Runs it when there is room beside the command's other calls; the rest wait. */
  async pass<Result>(call: () => Promise<Result>): Promise<Result> {
    const passing = this.#inTurn(call);
    const settled = passing.then(
      () => undefined,
      () => undefined,
    );
    this.#underWay.add(settled);
    try {
      return await passing;
    } finally {
      this.#underWay.delete(settled);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new CommandEnded('the command is over'));
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    this.#onEnd();
  }

  async #inTurn<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait();
    try {
      return await call();
    } finally {
      // Handed over, not given back: nobody who comes now is before those who wait.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  async #wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    await promise;
  }
}
