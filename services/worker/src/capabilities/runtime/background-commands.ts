import { ToolError, type BackgroundCommand, type BackgroundState } from '@concierge/agent';
import { limits } from '@concierge/contract';
import type { CommandResult } from '@concierge/sandbox';

/** How much unread output of a command is kept: the newest of it. */
const UNREAD_MAX_CHARACTERS = 64 * 1024;

export type RunInBackground = (options: { readonly signal: AbortSignal; onOutput(chunk: string): void }) => Promise<CommandResult>;

class Entry {
  readonly id: string;
  readonly title: string;
  readonly startedAtMs = Date.now();
  readonly stop = new AbortController();
  readonly ended: Promise<void>;
  state: BackgroundState = { at: 'running' };
  #unread = '';
  #dropped = 0;
  #heardBytes = 0;
  #changed = Promise.withResolvers<void>();

  constructor(id: string, title: string, run: RunInBackground) {
    this.id = id;
    this.title = title;
    this.ended = this.#follow(run);
  }

  get hasNews(): boolean {
    return this.#unread !== '' || this.state.at !== 'running';
  }

  /** Resolves with the next piece of output or the end. */
  async change(): Promise<void> {
    await this.#changed.promise;
  }

  take(): string {
    const dropped = this.#dropped === 0 ? '' : `[${String(this.#dropped)} characters before this were not kept]\n`;
    const text = dropped + this.#unread;
    this.#unread = '';
    this.#dropped = 0;
    return text;
  }

  #hear(chunk: string): void {
    this.#heardBytes += Buffer.byteLength(chunk);
    this.#unread += chunk;
    const excess = this.#unread.length - UNREAD_MAX_CHARACTERS;
    if (excess > 0) this.#unread = this.#unread.slice(excess);
    if (excess > 0) this.#dropped += excess;
    this.#tell();
  }

  async #follow(run: RunInBackground): Promise<void> {
    try {
      const result = await run({ signal: this.stop.signal, onOutput: (chunk) => this.#hear(chunk) });
      // While the command runs, only a limited amount is passed on; its last output is in the result alone.
      if (result.outputBytes > this.#heardBytes) this.#hear(`\n[all that it printed, its middle left out:]\n${result.output}`);
      this.state = { at: 'ended', result };
    } catch (error) {
      this.state = { at: 'failed', reason: error instanceof Error ? error.message : 'unknown' };
    }
    this.#tell();
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** The commands of one turn that run beside its other calls. Disposed, it kills those that still run. */
export class BackgroundCommands implements AsyncDisposable {
  readonly #entries: Entry[] = [];

  /** @throws ToolError when too many run already */
  start(title: string, run: RunInBackground): BackgroundCommand {
    const running = this.#entries.filter(({ state }) => state.at === 'running');
    if (running.length >= limits.backgroundCommandsMax) {
      throw new ToolError(
        `${String(running.length)} commands run in the background already, which is as many as may: end one first (process, action: kill).`,
      );
    }
    const entry = new Entry(`p${String(this.#entries.length + 1)}`, title, run);
    this.#entries.push(entry);
    return toView(entry);
  }

  list(): BackgroundCommand[] {
    return this.#entries.map((entry) => toView(entry));
  }

  takeOutput(id: string): string {
    return this.#find(id).take();
  }

  async waitFor(id: string, signal: AbortSignal): Promise<void> {
    const entry = this.#find(id);
    const aborted = Promise.withResolvers<void>();
    const onAbort = (): void => aborted.resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    if (!entry.hasNews) await Promise.race([entry.change(), aborted.promise]);
    signal.removeEventListener('abort', onAbort);
  }

  async kill(id: string): Promise<void> {
    const entry = this.#find(id);
    entry.stop.abort(new Error('killed'));
    await entry.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { stop } of this.#entries) stop.abort(new Error('the turn is over'));
    await Promise.all(this.#entries.map(async ({ ended }) => await ended));
  }

  #find(id: string): Entry {
    const entry = this.#entries.find((one) => one.id === id);
    if (entry !== undefined) return entry;
    const ids = this.#entries.map((one) => one.id).join(', ');
    throw new ToolError(
      `There is no background command "${id}". ${ids === '' ? 'None has been started in this turn.' : `There are: ${ids}.`}`,
    );
  }
}

function toView({ id, title, startedAtMs, state }: Entry): BackgroundCommand {
  return { id, title, startedAtMs, state };
}
