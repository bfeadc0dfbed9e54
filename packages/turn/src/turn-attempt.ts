import { AppError, limits, type AcceptedTurn, type TurnStatus, type TurnStep } from '@concierge/contract';
import type { Redis } from 'ioredis';
import { background, failpoint, isUnavailable, type Log } from '@concierge/runtime';
import { RevisionConflict, type Tenants, type TenantScope } from '@concierge/tenant';
import type { Doorbells } from './doorbells.ts';
import { foldStream, withoutRepeats, type FoldedStream } from './fold-steps.ts';
import type { Lanes, Lease } from './lanes.ts';
import { LeaseLost, TurnCancelled, WorkerDraining } from './stop-reasons.ts';
import { eventsOf, isTold, retellSteps, streamLost } from './retelling.ts';
import { firstEntryId, readEntries } from './stream-entry.ts';
import type { StreamBytes } from './stream-bytes.ts';
import type { TurnEnd, TurnHandlers, TurnRun } from './turn-run.ts';
import { TurnWriter } from './turn-writer.ts';

/** What an attempt needs of its worker. */
export interface AttemptOptions extends TurnHandlers {
  readonly redis: Redis;
  readonly lanes: Lanes;
  readonly doorbells: Doorbells;
  readonly tenants: Tenants;
  readonly log: Log;
  /** In this process, now. */
  readonly turnsRunning: () => number;
  readonly streamBytes: StreamBytes;
}

const SUSPENDED_WAIT_MS = 15_000;
const INFRASTRUCTURE_WAIT_MS = 3000;
const CRASH_WAIT_MS = 500;

function stateOf(end: TurnEnd): TurnStatus {
  if (end.event.type === 'error') return 'failed';
  return end.event.data.finishReason === 'cancelled' ? 'cancelled' : 'done';
}

const nothingYet: FoldedStream = { steps: [], lastPublicId: firstEntryId, interruptedText: false, openCalls: new Set() };

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
      const scope = await this.#options.tenants.open(this.#lease.accountId);
      if ((await scope.settings()).suspended === true) {
        await this.#release(SUSPENDED_WAIT_MS, false);
        return;
      }
      const turn = await scope.inbox.read(this.#lease.turnId);
      if (turn === undefined) await this.#endWithoutInbox(scope);
      else await this.#attempt(scope, turn);
    } catch (error) {
      await this.#giveBack(error);
    }
  }

  async #attempt(scope: TenantScope, turn: AcceptedTurn): Promise<void> {
    const lease = this.#lease;
    const { run, writer } = await this.#begin(scope, turn);
    const end = lease.starts > limits.turnMaxStarts ? await this.#options.failTurn(run, 'turn_crashed') : await this.#options.runTurn(run);
    await failpoint('turn.after-save');
    if (end.isRepeated === true) await this.#tellSaved(run, writer);
    const rings = await writer.finish(end.event, { state: stateOf(end), answered: end.answered });
    await failpoint('turn.after-done');
    background(scope.inbox.remove(turn.turnId), this.#options.log);
    await this.#options.doorbells.ring(rings);
  }

  /** Where earlier attempts left it: in the stream, and where that has lost it, in the journal beside the inbox file. */
  async #begin(scope: TenantScope, turn: AcceptedTurn): Promise<{ run: TurnRun; writer: TurnWriter }> {
    const lease = this.#lease;
    const seldom = lease.attempt > 1 || lease.relaid || lease.orphan;
    const journal = seldom ? withoutRepeats(await scope.inbox.readJournal(turn.turnId)) : [];
    const folded = lease.attempt > 1 ? foldStream(await readEntries(this.#options.redis, turn.turnId, null)) : nothingYet;
    if (lease.cancelled || (seldom && (await scope.inbox.isCancelled(turn.turnId))))
      this.#stop.abort(new TurnCancelled('cancelled before it began'));
    const waitingBehind = async (atMost: number): Promise<string[]> => await this.#options.lanes.waitingBehind(lease, atMost);
    const facts = { scope, turn, attempt: lease.attempt, startedAtMs: lease.startedAtMs, waitingBehind, signal: this.#stop.signal };
    if (isStreamLost(folded, journal, lease)) {
      // No steps yet: they are recorded again as they are told again.
      const writer = this.#writer(scope, { folded, steps: [], persisted: journal.length });
      retellSteps(writer, journal);
      return { writer, run: { ...facts, writer, steps: journal, reset: null, openCalls: new Set() } };
    }
    const { steps, openCalls, interruptedText } = folded;
    const writer = this.#writer(scope, { folded, steps, persisted: journal.length });
    return { writer, run: { ...facts, writer, steps, reset: interruptedText ? 'worker_lost' : null, openCalls } };
  }

  /** What was published is what counts: a stream that says anything else, or not all of it, is told again. */
  async #tellSaved({ scope, turn }: TurnRun, writer: TurnWriter): Promise<void> {
    await writer.flush();
    const session = await scope.sessions.view(turn.sessionId);
    const messages = session?.messages.filter(({ turnId }) => turnId === turn.turnId) ?? [];
    if (isTold(await readEntries(this.#options.redis, turn.turnId, null), messages)) return;
    writer.emit(streamLost);
    for (const event of messages.flatMap((message) => eventsOf(message))) writer.emit(event);
  }

  #writer(scope: TenantScope, past: { folded: FoldedStream; steps: readonly TurnStep[]; persisted: number }): TurnWriter {
    const { lanes, log, turnsRunning, streamBytes } = this.#options;
    return new TurnWriter({
      lanes,
      lease: this.#lease,
      inbox: scope.inbox,
      steps: past.steps,
      persisted: past.persisted,
      lastPublicId: past.folded.lastPublicId,
      log,
      turnsRunning,
      onLost: (reason) => {
        this.#stop.abort(reason);
      },
      onWritten: (characters) => {
        streamBytes.add(scope.accountId, characters);
      },
    });
  }

  /** Removed by hand, or a restored backup: there is nothing to answer any more, and whoever listens is told so. */
  async #endWithoutInbox(scope: TenantScope): Promise<void> {
    const writer = this.#writer(scope, { folded: nothingYet, steps: [], persisted: 0 });
    const data = {
      code: 'not_found',
      message: 'This turn is not in the inbox any more.',
      retryable: false,
      turnId: this.#lease.turnId,
    } as const;
    await this.#options.doorbells.ring(await writer.finish({ type: 'error', data }, { state: 'failed' }));
  }

  async #giveBack(error: unknown): Promise<void> {
    const { log } = this.#options;
    const facts = { turnId: this.#lease.turnId, accountId: this.#lease.accountId, attempt: this.#lease.attempt };
    if (error instanceof LeaseLost) {
      log.warn({ ...facts, err: error }, 'lost the lease');
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
    const rings = await this.#options.lanes.release(this.#lease, { waitMs, charged });
    await this.#options.doorbells.ring(rings);
  }
}

/** Redis came back without it, or without all of it: a step is in the stream before it is in the journal. */
function isStreamLost(folded: FoldedStream, journal: readonly TurnStep[], lease: Lease): boolean {
  const isEmpty = folded.steps.length === 0 && folded.lastPublicId === firstEntryId;
  return (lease.relaid && isEmpty) || journal.length > folded.steps.length;
}
