import { cutText, limits, type ToolCall, type TurnEvent } from '@concierge/contract';

/** Output that a call reports within this time goes out together. */
const GATHER_MS = 250;
const MORE_NOTE = '\n[there is more: it is in the result]\n';

/**
 * Emits what a call reports while it runs to the readers of the turn. quiet (the call may be short: nothing is emitted)
 * → telling (some of it at a time) → full (the limit is reached); disposed when the call has ended: nothing comes after
 * that.
 */
export class CallProgress implements Disposable {
  readonly #call: Pick<ToolCall, 'id' | 'name'>;
  readonly #emit: (event: TurnEvent) => void;
  #gathered = '';
  #bytesLeft: number = limits.toolProgressMaxBytes;
  #state: 'quiet' | 'telling' | 'full' | 'disposed' = 'quiet';
  #timer: NodeJS.Timeout;

  constructor(call: Pick<ToolCall, 'id' | 'name'>, emit: (event: TurnEvent) => void) {
    this.#call = call;
    this.#emit = emit;
    this.#timer = setTimeout(() => this.#tell(), limits.toolProgressAfterMs);
  }

  hear(delta: string): void {
    if (this.#state === 'full' || this.#state === 'disposed') return;
    // While the state is quiet, the call may report any amount; no more than this can be emitted.
    if (this.#gathered.length <= limits.toolProgressMaxBytes) this.#gathered += delta;
  }

  [Symbol.dispose](): void {
    this.#state = 'disposed';
    clearTimeout(this.#timer);
  }

  #tell(): void {
    this.#state = 'telling';
    const { text, isCut } = cutText(this.#gathered.toWellFormed(), this.#bytesLeft);
    this.#gathered = '';
    this.#bytesLeft -= Buffer.byteLength(text);
    const delta = isCut ? text + MORE_NOTE : text;
    const { id, name } = this.#call;
    if (delta !== '') this.#emit({ type: 'tool_call_progress', data: { id, name, delta } });
    if (isCut) this.#state = 'full';
    else this.#timer = setTimeout(() => this.#tell(), GATHER_MS);
  }
}
