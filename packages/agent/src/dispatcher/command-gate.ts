import type { CommandCaller } from '../tools/runtime/runtime-access.ts';

/** Why a nested call stops when the command that made it is over. */
export class CommandEnded extends Error {
  override readonly name = 'CommandEnded';
}

/** Room for a limited number of calls at once; the others wait, in order. */
export interface CallSlots {
  run<Result>(call: () => Promise<Result>): Promise<Result>;
}

export interface GatePlace {
  readonly token: string;
  readonly depth: number;
  /** Shared by the command's calls. */
  readonly slots: CallSlots;
  readonly onEnd: () => void;
}

/** A running command's access to the tools. Disposal stops the calls that are still under way and waits for them. */
export class CommandGate implements AsyncDisposable {
  readonly token: string;
  readonly caller: CommandCaller;
  /** 1 for a command that the model asked for; one more for each that was started through the dispatcher. */
  readonly depth: number;
  readonly #ended = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #slots: CallSlots;
  readonly #onEnd: () => void;
  #made = 0;

  constructor(caller: CommandCaller, place: GatePlace) {
    this.caller = caller;
    this.token = place.token;
    this.depth = place.depth;
    this.#slots = place.slots;
    this.#onEnd = place.onEnd;
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** The id is derived from the command's call, so that no two calls of a turn have the same. */
  nextCallId(): string {
    this.#made += 1;
    return `${this.caller.callId}/${String(this.#made)}`;
  }

  /** Runs the call when there is room beside the command's other calls; the rest wait. */
  async pass<Result>(call: () => Promise<Result>): Promise<Result> {
    const passing = this.#slots.run(call);
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
}
