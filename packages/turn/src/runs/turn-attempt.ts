import { AppError, limits, type AcceptedTurn, type TurnStatus } from '@concierge/contract';
import type { Redis } from 'ioredis';
import { background, failpoint, isUnavailable, type Log } from '@concierge/runtime';
import { parseTurn, RevisionConflict, type Tenants, type TenantScope } from '@concierge/tenant';
import type { TakenWakeup, WakeupQueue } from '../lanes/wakeup-queue.ts';
import { replayEnded, replaySaved, replaySteps } from '../streams/replay-turn.ts';
import { foldStream, nothingEarlier, readEarlier, type Earlier } from '../streams/fold-stream.ts';
import { LaneRepair, withoutOvertaking } from '../lanes/lane-repair.ts';
import type { Lanes, Lease } from '../lanes/lanes.ts';
import { LeaseLost, TurnCancelled, WorkerDraining, type TurnEnd, type TurnHandlers, type TurnRun } from './turn-run.ts';
import { readEntries } from '../streams/stream-entry.ts';
import { TurnWriter, type StreamPast, type WritingWorker } from '../streams/turn-writer.ts';

/** What an attempt needs of its worker. */
export interface AttemptOptions {
  readonly handlers: TurnHandlers;
  readonly redis: Redis;
  readonly lanes: Lanes;
  readonly wakeupQueue: WakeupQueue;
  readonly tenants: Tenants;
  readonly log: Log;
  readonly worker: WritingWorker & {
    /** It drains, and is not to begin another model call. */
    isHandingOn(): boolean;
  };
  /** Another worker has the turn: what this one would have written is refused. */
  readonly onFenced?: (() => void) | undefined;
}

const SUSPENDED_WAIT_MS = 15_000;
const INFRASTRUCTURE_WAIT_MS = 3000;
const CRASH_WAIT_MS = 500;

function toTurnStatus(end: TurnEnd): TurnStatus {
  if (end.event.type === 'error') return 'failed';
  return end.event.data.finishReason === 'cancelled' ? 'cancelled' : 'done';
}

/**
 * One start of one turn, from the lease to its end or its hand-over.
 * leased → run → session published (by the handler) → announced → inbox file removed; or → released, for another start.
 */
export class TurnAttempt {
  readonly #options: AttemptOptions;
  readonly #lease: Lease;
  readonly #stop: AbortController;

  constructor(options: AttemptOptions, lease: Lease, stop: AbortController) {
    this.#options = options;
    this.#lease = lease;
    this.#stop = stop;
  }

  async run(): Promise<void> {
    try {
      await failpoint('turn.after-lease');
      const scope = await this.#options.tenants.open(this.#lease.tenantId);
      // What an erasure has cancelled ends all the same, without an answer.
      const isErased = this.#lease.cancelled && (await this.#options.tenants.runningErasures(scope.tenantId)).length > 0;
      if (!isErased && (await scope.settings()).suspended === true) {
        await this.#release(SUSPENDED_WAIT_MS, false);
        return;
      }
      // Checked after the lease: a turn that was acknowledged before this one was accepted is on disk by now, and in
      // the lane or numbered.
      const { sessionId, turnId, logged } = this.#lease;
      const reading = logged === undefined ? scope.inbox.read(turnId) : parseTurn(logged);
      const [turn, isNumbered] = await Promise.all([reading, scope.laneOrder.isUsed(sessionId)]);
      if (isNumbered && (await new LaneRepair(this.#options).repair(scope, this.#lease, this.#lease))) {
        this.#options.log.info({ turnId, tenantId: this.#lease.tenantId }, 'an earlier turn of its session goes first');
        return;
      }
      if (turn === undefined) await this.#endWithoutInbox(scope);
      else await this.#attempt(scope, turn, isNumbered);
    } catch (error) {
      await this.#giveBack(error);
    }
  }

  async #attempt(scope: TenantScope, turn: AcceptedTurn, isNumbered: boolean): Promise<void> {
    const lease = this.#lease;
    const { run, writer } = await this.#begin(scope, turn);
    const { handlers } = this.#options;
    const end = lease.starts > limits.turnMaxStarts ? await handlers.failTurn(run, 'turn_crashed') : await handlers.runTurn(run);
    await failpoint('turn.after-save');
    if (end.isRepeated === true) {
      await writer.flush();
      await replaySaved(this.#options.redis, run);
    }
    await writer.finish(end.event, { state: toTurnStatus(end), answered: end.answered });
    await failpoint('turn.after-done');
    background(this.#clear(scope, turn, isNumbered), this.#options.log);
  }

  /**
   * The turn's number is removed after the turn: it keeps the order of the waiting turns. A number given since the turn
   * began is removed by the next repair.
   */
  async #clear(scope: TenantScope, { sessionId, turnId }: AcceptedTurn, isNumbered: boolean): Promise<void> {
    await scope.inbox.remove(turnId);
    if (isNumbered) await scope.laneOrder.remove(sessionId, [turnId]);
  }

  /**
   * Continues where earlier attempts stopped: from the stream or, where the stream has lost entries, from the journal
   * beside the inbox file.
   */
  async #begin(scope: TenantScope, turn: AcceptedTurn): Promise<{ run: TurnRun; writer: TurnWriter }> {
    const lease = this.#lease;
    const { journal, folded, entries, isLost } = await this.#earlierAttempts(scope);
    const facts = {
      scope,
      turn,
      attempt: lease.attempt,
      startedAtMs: lease.startedAtMs,
      wokenAtMs: readWokenAt(lease.wakeup),
      waitingBehind: async (atMost: number): Promise<readonly string[]> => await this.#waitingBehind(scope, atMost),
      signal: this.#stop.signal,
    };
    const { steps, openCalls, interruptedText, lastPublicId } = folded;
    const written = { persisted: journal.length, lastPublicId, entries };
    if (isLost) {
      // The writer starts without steps: the replay records them again.
      const writer = this.#openWriter(scope, { ...written, steps: [], openCalls: new Set() });
      const known = journal.length >= steps.length ? journal : steps;
      replaySteps(writer, known);
      return { writer, run: { ...facts, ...this.#handingOn(writer), steps: known, reset: null, openCalls: new Set() } };
    }
    const writer = this.#openWriter(scope, { ...written, steps, openCalls });
    return { writer, run: { ...facts, ...this.#handingOn(writer), steps, reset: interruptedText ? 'worker_lost' : null, openCalls } };
  }

  /** What is not in the stream by then would be done again. */
  #handingOn(writer: TurnWriter): Pick<TurnRun, 'writer' | 'handOn'> {
    const handOn = async (): Promise<void> => {
      if (!this.#options.worker.isHandingOn()) return;
      await writer.flush();
      throw new WorkerDraining('the worker stops');
    };
    return { writer, handOn };
  }

  async #earlierAttempts(scope: TenantScope): Promise<Earlier> {
    const { turnId, attempt, restored, orphan, cancelled, cutEpoch } = this.#lease;
    const { inbox } = scope;
    const seldom = attempt > 1 || restored || orphan || cutEpoch !== null;
    if (cancelled || (seldom && (await inbox.isCancelled(turnId)))) this.#stop.abort(new TurnCancelled('cancelled before it began'));
    return seldom ? await readEarlier(this.#options.redis, inbox, this.#lease) : nothingEarlier;
  }

  async #waitingBehind(scope: TenantScope, atMost: number): Promise<readonly string[]> {
    const behind = await this.#options.lanes.waitingBehind(this.#lease, atMost);
    // Checked after the lane: an earlier turn that is not among these is numbered by now.
    if (behind.length === 0 || !(await scope.laneOrder.isUsed(this.#lease.sessionId))) return behind;
    return await withoutOvertaking(scope, this.#lease, behind);
  }

  #openWriter({ inbox }: TenantScope, past: StreamPast): TurnWriter {
    const { lanes, worker, log } = this.#options;
    return new TurnWriter({ lanes, lease: this.#lease, inbox, past, stop: this.#stop, worker, log });
  }

  /** Ends a turn that has ended and whose end Redis has lost. */
  async #endWithoutInbox(scope: TenantScope): Promise<void> {
    const { turnId } = this.#lease;
    const { lastPublicId, openCalls } = foldStream(await readEntries(this.#options.redis, turnId, null));
    const writer = this.#openWriter(scope, { steps: [], persisted: 0, lastPublicId, openCalls, entries: null });
    const { event, state } = await replayEnded(scope, this.#lease, writer);
    await writer.finish(event, { state });
  }

  async #giveBack(error: unknown): Promise<void> {
    const { log } = this.#options;
    const facts = { turnId: this.#lease.turnId, tenantId: this.#lease.tenantId, attempt: this.#lease.attempt };
    if (error instanceof LeaseLost) {
      log.warn({ ...facts, err: error }, 'lost the lease');
      this.#options.onFenced?.();
      // When the stream could not be written the lease may still be ours.
      if (error.cause !== undefined) await this.#release(INFRASTRUCTURE_WAIT_MS, false);
    } else if (error instanceof WorkerDraining || error instanceof RevisionConflict) {
      log.info({ ...facts, reason: error.name }, 'turn goes on elsewhere');
      await this.#release(0, false);
    } else if (isUnavailable(error)) {
      log.error({ ...facts, err: error }, 'turn has to wait for the machine');
      await this.#release(INFRASTRUCTURE_WAIT_MS, false);
    } else if (error instanceof AppError && error.code === 'not_found') {
      log.warn({ ...facts, err: error }, 'the tenant is gone');
      await this.#release(SUSPENDED_WAIT_MS, false);
    } else {
      log.error({ ...facts, err: error }, 'attempt failed');
      await this.#release(CRASH_WAIT_MS, true);
    }
  }

  async #release(waitMs: number, charged: boolean): Promise<void> {
    const wakeups = await this.#options.lanes.release(this.#lease, { waitMs, charged });
    await this.#options.wakeupQueue.wake(wakeups);
  }
}

/** When the wake-up was sent, which its id ends with. */
function readWokenAt(wakeup: Pick<TakenWakeup, 'id'> | undefined): number | undefined {
  const at = Number(wakeup?.id.split('.').at(-1));
  return at > 0 ? at : undefined;
}
