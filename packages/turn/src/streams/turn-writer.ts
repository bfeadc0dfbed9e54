import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { failpoint, isRedisFull, type Log } from '@concierge/runtime';
import type { TerminalEvent, TurnEvent, TurnStep } from '@concierge/contract';
import type { Inbox } from '@concierge/tenant';
import type { Appended, Finished, Lanes, Lease, TurnEnding } from '../lanes/lanes.ts';
import { replaySteps } from './replay-turn.ts';
import { LeaseLost, WorkerDraining } from '../runs/turn-run.ts';
import type { StreamBytes } from './stream-bytes.ts';
import { encodeLive, STEP, type StreamEntry, type StreamWrite } from './stream-entry.ts';

/** Deltas that arrive within this time of the last write go out together; the first one goes out at once. */
const COALESCE_MIN_MS = 12;
/** A reader notices at most twenty updates a second. */
const COALESCE_MAX_MS = 50;
/** Each other running turn adds this much: stream writes are most of a busy worker's work. */
const COALESCE_MS_PER_TURN = 0.4;

/** How long to wait before a write is repeated to a Redis without memory. */
const FULL_WAIT_MS = 250;

/** How long deltas are coalesced in a worker that runs this many turns. */
export function coalesceMs(turnsRunning: number): number {
  return Math.min(COALESCE_MAX_MS, COALESCE_MIN_MS + turnsRunning * COALESCE_MS_PER_TURN);
}

interface Pending {
  readonly type: string;
  json: string;
  /** Text that is still growing; rendered when it is written. */
  delta: string | null;
}

/** What earlier attempts of the turn left. */
export interface StreamPast {
  readonly steps: readonly TurnStep[];
  /** Steps that the journal beside the inbox file already has. */
  readonly persisted: number;
  /** The last public entry of the stream so far. */
  readonly lastPublicId: string;
  /** Calls that they started. */
  readonly openCalls: ReadonlySet<string>;
  /** The number of entries in the stream so far; null when not counted. */
  readonly entries: number | null;
}

/** The worker that a turn runs in, as far as its writer needs it. */
export interface WritingWorker {
  /** The number of turns that run in this process now. */
  turnsRunning(): number;
  /** Called when a step is in the stream. */
  onProgress(): void;
  readonly streamBytes: Pick<StreamBytes, 'add'>;
}

export interface TurnWriterOptions {
  readonly lanes: Lanes;
  readonly lease: Lease;
  readonly inbox: Pick<Inbox, 'appendJournal'>;
  readonly past: StreamPast;
  /**
   * Stops the attempt; the writer does when it loses the lease. An attempt that will continue in another worker does
   * not wait for a Redis without memory.
   */
  readonly stop: AbortController;
  readonly worker: WritingWorker;
  readonly log: Log;
}

/**
 * The only output of a running turn. Events and steps go to the stream in the order they were given, several in one
 * write; each write is refused once the lease has passed on. While Redis has no memory a write waits. When the stream
 * has lost entries (Redis was killed before its last second was on disk), the whole turn is replayed.
 */
export class TurnWriter {
  readonly #options: TurnWriterOptions;
  readonly #steps: TurnStep[];
  #pending: Pending[] = [];
  #progress = false;
  #seq = 0;
  #lastPublicId: string;
  #persisted: number;
  #lastWriteAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #writing: Promise<void> | undefined;
  #persisting: Promise<void> | undefined;
  #lost: LeaseLost | undefined;
  #entries: number | null;
  /** The text since the last step with text; calls whose start is emitted and whose result is not. */
  #openText = '';
  readonly #openCalls: Set<string>;

  constructor(options: TurnWriterOptions) {
    this.#options = options;
    const { past } = options;
    this.#steps = [...past.steps];
    this.#persisted = past.persisted;
    this.#lastPublicId = past.lastPublicId;
    this.#entries = past.entries;
    this.#openCalls = new Set(past.openCalls);
  }

  /** Emits an event to the turn's readers. Text is coalesced; everything else goes out with the next write. */
  emit(event: TurnEvent): void {
    const last = this.#pending.at(-1);
    if (event.type === 'text_delta') {
      if (event.data.delta === '') return;
      this.#openText += event.data.delta;
      if (last?.delta != null) last.delta += event.data.delta;
      else this.#pending.push({ type: event.type, json: '', delta: event.data.delta });
    } else {
      this.#pending.push(toPending(event));
      if (event.type === 'text_reset') this.#openText = '';
      if (event.type === 'tool_call_start') this.#openCalls.add(event.data.id);
      if (event.type === 'tool_result') this.#openCalls.delete(event.data.id);
    }
    this.#schedule();
  }

  /**
   * Records a finished step, with the events that belong to it, after everything emitted before. Resolves once the
   * stream has it.
   * @throws LeaseLost
   */
  async step(step: TurnStep, events: readonly TurnEvent[] = []): Promise<void> {
    this.record(step);
    for (const event of events) this.emit(event);
    await this.flush();
  }

  /** Records a step that a crash may lose: it costs no write of its own but goes out with the next one. */
  record(step: TurnStep): void {
    this.#steps.push(step);
    this.#pending.push(toPendingStep(step));
    if (step.kind === 'assistant' || step.kind === 'said') this.#openText = '';
    if (step.kind === 'assistant' || step.kind === 'said' || step.kind === 'result') this.#progress = true;
  }

  /** Writes all steps so far beside the inbox file, fsynced: an emptied Redis must not repeat a side effect. */
  async persist(): Promise<void> {
    // Parallel calls persist in parallel; a call must neither repeat nor count the steps that another is writing.
    while (this.#persisting !== undefined) await this.#persisting;
    if (this.#persisted === this.#steps.length) return;
    this.#persisting = this.#persist().finally(() => {
      this.#persisting = undefined;
    });
    await this.#persisting;
  }

  async #persist(): Promise<void> {
    const missing = this.#steps.slice(this.#persisted);
    await this.#options.inbox.appendJournal(this.#options.lease.turnId, missing);
    this.#persisted += missing.length;
  }

  get hasJournal(): boolean {
    return this.#persisted > 0;
  }

  /** Writes what is pending now. @throws LeaseLost */
  async flush(): Promise<void> {
    this.#cancelTimer();
    while (this.#writing !== undefined) await this.#writing;
    if (this.#lost !== undefined) throw this.#lost;
    if (this.#pending.length === 0) return;
    this.#writing = this.#write().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
    await this.flush();
  }

  /** Announces the end and frees the lane: call only after the session file has been published. @throws LeaseLost */
  async finish(event: TerminalEvent, end: Omit<TurnEnding, 'payload'>): Promise<void> {
    this.#cancelTimer();
    // No other wait may follow this one: a write that began in it would be overtaken by the end and be lost.
    while (this.#writing !== undefined) await this.#writing;
    if (this.#lost !== undefined) throw this.#lost;
    // Pending entries go out in the same write.
    const finished = await this.#finish([...this.#pending, toPending(event)], end);
    const answer = finished === 'cut' ? await this.#finish([...this.#wholeTurn(), toPending(event)], end) : finished;
    if (answer !== 'finished') throw this.#loseLease();
  }

  #cancelTimer(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    this.#timer = undefined;
    this.#immediate = undefined;
  }

  async #finish(pending: readonly Pending[], end: Omit<TurnEnding, 'payload'>): Promise<Finished> {
    const entries = this.#number(pending);
    this.#pending = [];
    const payload = encodeLive(this.#lastPublicId, entries);
    return await this.#patiently(async () => this.#options.lanes.finish(this.#options.lease, this.#toWrite(entries), { ...end, payload }));
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#immediate !== undefined || this.#writing !== undefined) return;
    const wait = this.#lastWriteAt + coalesceMs(this.#options.worker.turnsRunning()) - performance.now();
    const flush = (): void => {
      this.flush().catch((error: unknown) => {
        if (!(error instanceof LeaseLost))
          this.#options.log.error({ err: error, turnId: this.#options.lease.turnId }, 'cannot write to the stream');
      });
    };
    // A timer waits for a millisecond at least; what came from the model in one piece is emitted before an immediate.
    if (wait > 0) this.#timer = setTimeout(flush, wait);
    else this.#immediate = setImmediate(flush);
  }

  async #write(): Promise<void> {
    const pending = this.#pending;
    const progress = this.#progress;
    this.#pending = [];
    this.#progress = false;
    const appended = await this.#append(pending, progress);
    const answer = appended.kind === 'cut' ? await this.#append(this.#wholeTurn(), progress) : appended;
    this.#lastWriteAt = performance.now();
    if (answer.kind !== 'written') throw this.#loseLease();
    this.#entries = answer.entries;
    if (progress) this.#options.worker.onProgress();
  }

  async #append(pending: readonly Pending[], progress: boolean): Promise<Appended> {
    const entries = this.#number(pending);
    const payload = encodeLive(this.#lastPublicId, entries);
    await failpoint('stream.before-append');
    const appended = await this.#patiently(async () =>
      this.#options.lanes.append(this.#options.lease, this.#toWrite(entries), { payload, progress }),
    );
    if (appended.kind !== 'written') return appended;
    const { lease, worker } = this.#options;
    const characters = entries.reduce((sum, { json }) => sum + json.length, 0);
    worker.streamBytes.add(lease.tenantId, characters);
    this.#lastPublicId = entries.findLast((entry) => entry.type !== STEP)?.id ?? this.#lastPublicId;
    return appended;
  }

  /**
   * A write that a full Redis refused has changed nothing and is sent again. Entries of any other failed write are
   * dropped: the next attempt restores the whole stream.
   */
  async #patiently<Reply>(write: () => Promise<Reply>): Promise<Reply> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        if (!isRedisFull(error) || this.#goesOnElsewhere()) throw this.#loseLease(error);
        await pause(FULL_WAIT_MS);
      }
    }
  }

  #goesOnElsewhere(): boolean {
    const { reason }: { readonly reason: unknown } = this.#options.stop.signal;
    return reason instanceof LeaseLost || reason instanceof WorkerDraining;
  }

  /**
   * All of the turn so far, for a stream that has lost entries; `text_reset` comes first. Pending entries are included.
   */
  #wholeTurn(): Pending[] {
    const whole: Pending[] = [];
    const output = {
      emit: (event: TurnEvent) => void whole.push(toPending(event)),
      record: (step: TurnStep) => void whole.push(toPendingStep(step)),
    };
    replaySteps(output, this.#steps, this.#openCalls);
    if (this.#openText !== '') whole.push({ type: 'text_delta', json: '', delta: this.#openText });
    this.#pending = [];
    this.#entries = null;
    this.#options.log.warn({ turnId: this.#options.lease.turnId }, 'the stream has lost entries and is replayed');
    return whole;
  }

  #number(pending: readonly Pending[]): StreamEntry[] {
    return pending.map(({ type, json, delta }) => {
      this.#seq += 1;
      const id = `${this.#options.lease.epoch}-${String(this.#seq)}`;
      return { id, type, json: delta === null ? json : `{"delta":${JSON.stringify(delta)}}` };
    });
  }

  #toWrite(entries: readonly StreamEntry[]): StreamWrite {
    const first = this.#seq - entries.length + 1;
    return { entries: entries.map(({ type, json }, index) => ({ seq: first + index, type, json })), before: this.#entries };
  }

  #loseLease(cause?: unknown): LeaseLost {
    this.#lost ??= new LeaseLost(cause === undefined ? 'another worker has this session now' : 'the stream cannot be written', { cause });
    this.#options.stop.abort(this.#lost);
    return this.#lost;
  }
}

function toPending(event: TurnEvent): Pending {
  return { type: event.type, json: JSON.stringify(event.data), delta: null };
}

function toPendingStep(step: TurnStep): Pending {
  return { type: STEP, json: JSON.stringify(step), delta: null };
}
