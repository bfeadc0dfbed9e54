import type { Redis } from 'ioredis';
import { AppError, limits, type AcceptedTurn, type TurnInput } from '@concierge/contract';
import { background, failpoint, type Log } from '@concierge/runtime';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import type { WakeupQueue } from './wakeup-queue.ts';
import { deriveFreshSender, deriveTurnId, newTurnId } from '../keys.ts';
import { LaneRepair } from './lane-repair.ts';
import { mayWait, type EnqueueOutcome, type Lanes } from './lanes.ts';
import type { Appended, ProcessLog } from '../wal/process-log.ts';
import type { LoggedTurn, Written } from '../wal/open-log.ts';
import { DebounceTimer } from './debounce-timer.ts';
import { findNamedSession } from './named-session.ts';
import { findDuplicate, findEnded, replay, type Prepared, type TurnReceipt } from './duplicates.ts';

export interface AcceptOptions {
  readonly redis: Redis;
  readonly lanes: Lanes;
  readonly wakeupQueue: WakeupQueue;
  readonly accepted: ProcessLog;
  readonly log: Log;
  readonly now?: () => number;
}

/**
 * The only way in. Order is part of the meaning: session key and limits; then the record in the write-ahead log or the
 * inbox file, synced, from which on the turn is accepted; then its place in the lane; then the wake-up. A failure after
 * that is no error to the caller: the reconciler finishes the work. A turn that gets no place in its lane gets its file
 * and a number on disk before the caller gets its answer, so that no later turn overtakes it.
 */
export class TurnAcceptance {
  readonly #options: AcceptOptions;
  readonly #debounceTimer: DebounceTimer;
  readonly #repair: LaneRepair;

  constructor(options: AcceptOptions) {
    this.#options = options;
    this.#debounceTimer = new DebounceTimer(options);
    this.#repair = new LaneRepair(options);
  }

  /**
   * @throws AppError `not_found` (contact_id), `contact_mismatch`, `session_busy`, `too_many_waiting`,
   * `idempotency_conflict`, `overloaded` when neither the lane nor the disk can take it
   */
  async accept(scope: TenantScope, input: TurnInput): Promise<TurnReceipt> {
    const prepared = await this.prepare(scope, input, this.now());
    const { turn, ended } = prepared;
    if (ended !== null) return replay(ended, input);
    const isNumbered = await scope.laneOrder.isUsed(turn.sessionId);
    if (isNumbered) await this.#joinOrder(scope, input, turn);
    const written = await this.write(scope, prepared, { mayLog: !isNumbered });
    if (written === 'exists') return await this.attach(scope, input, turn);
    try {
      await failpoint('accept.after-inbox');
      const receipt = await this.settle(scope, { input, turn, logged: written }, await this.enqueue(input, turn, written));
      if (isNumbered && input.busy === 'reject') await scope.laneOrder.claim(turn.sessionId, turn.turnId);
      return receipt;
    } finally {
      written?.release();
    }
  }

  /**
   * Makes the turn accepted: in the log, where there is one, or in its file (undefined). `exists`: this process or,
   * with a file, another one accepted it before.
   */
  protected async write(scope: TenantScope, prepared: Prepared, { mayLog }: { readonly mayLog: boolean }): Promise<Appended> {
    const { input, turn } = prepared;
    const [logged] = mayLog ? await this.append(scope, [prepared]) : [];
    if (logged !== undefined) return logged;
    // The same message may be in a log alone, and its place is the one that it has there.
    const first = input.dedupeId === null ? undefined : await scope.inbox.read(turn.turnId);
    const created = await scope.inbox.accept(first ?? turn, { isUnique: input.dedupeId === null });
    return first !== undefined || created === 'exists' ? 'exists' : undefined;
  }

  protected async append(scope: TenantScope, prepared: readonly Prepared[]): Promise<readonly Appended[]> {
    return this.#options.accepted.append(scope, prepared);
  }

  /** Builds the new turn, or finds the one that the same request made earlier. */
  protected async prepare(scope: TenantScope, input: TurnInput, acceptedAtMs: number): Promise<Prepared> {
    const identity = await scope.identity();
    const turnId = input.dedupeId === null ? newTurnId() : deriveTurnId(identity, input.dedupeId);
    const { agent, channel, sender, contactId } = input;
    const own = deriveSessionId(agent, channel, sender ?? deriveFreshSender(turnId));
    const named = contactId !== null && { agent, contactId, senders: sender === null ? null : own };
    const sessionId = named ? await findNamedSession(this.#options, scope, named) : own;
    // The duplicate check in Redis is part of the enqueue script: nearly all messages are new.
    const ended = input.dedupeId === null ? null : await findEnded(scope, turnId, sessionId);
    return { input, ended, identity, turn: toAccepted(input, { turnId, sessionId, acceptedAtMs, tenantId: scope.tenantId }) };
  }

  /**
   * Null: not enqueued yet. The turn is on disk and so accepted. The reconciler enqueues it as soon as Redis answers.
   */
  protected async enqueue({ busy, debounceMs }: TurnInput, turn: AcceptedTurn, logged?: LoggedTurn): Promise<EnqueueOutcome | null> {
    return this.#options.lanes.enqueue(turn, { busy, debounceMs, found: 'accepted', logged }).catch((error: unknown) => {
      this.#warn(error, turn, 'accepted, but not yet in its lane');
      return null;
    });
  }

  /** The outcome of an acceptance; what is in the log alone stays there, or gets its file first. */
  protected async settle(scope: TenantScope, written: Written, placed: EnqueueOutcome | null): Promise<TurnReceipt> {
    const { input, turn, logged } = written;
    const receipt = { turnId: turn.turnId, sessionId: turn.sessionId, replayed: false };
    if (placed === null) return (await this.#fileOrAttach(scope, written)) ?? (await this.number(scope, turn), receipt);
    switch (placed.kind) {
      case 'enqueued': {
        if (placed.isUnclear) {
          if (logged !== undefined) await scope.inbox.accept(turn);
          await this.number(scope, turn);
        }
        await failpoint('accept.after-lane');
        if (placed.dueInMs !== null) this.#debounceTimer.expect(placed.dueInMs);
        if (input.busy === 'interrupt' && placed.waitingBefore > 0) await this.#interruptHead(scope, placed.headTurnId);
        return receipt;
      }
      case 'busy': {
        await this.#forget(scope, written);
        throw new AppError('session_busy', 'The session is busy with another turn.', { retryAfterSeconds: 1 });
      }
      case 'full': {
        await this.#forget(scope, written);
        const bounds = `${String(mayWait(input.busy))} turns may wait in a session, and ${String(limits.tenantMaxWaiting)} sessions of a tenant`;
        throw new AppError('too_many_waiting', `At most ${bounds}.`, { retryAfterSeconds: 5 });
      }
      case 'exists': {
        return await this.#settleKnown(scope, written, placed);
      }
    }
  }

  /** Redis knows the turn already. */
  async #settleKnown(scope: TenantScope, written: Written, known: Extract<EnqueueOutcome, { kind: 'exists' }>): Promise<TurnReceipt> {
    const { input, turn, logged } = written;
    const receipt = { turnId: turn.turnId, sessionId: turn.sessionId, replayed: false };
    if (known.logged !== undefined ? known.logged.logId !== logged?.logId : logged !== undefined) {
      // Another process accepted the same message before: what is in this log must not become a second one. A file
      // stays: the other's log may count on it by now.
      await logged?.settle();
      return replay({ turnId: turn.turnId, sessionId: known.sessionId, requestHash: known.requestHash }, input);
    }
    if (known.state === 'waiting' || known.state === 'running') {
      // The command was sent twice by a connection that was cut, and this is its second answer; or the reconciler
      // enqueued the file before this process did. Then the turn may be enqueued by its acceptance time: an earlier
      // turn from another clock may stand before it now.
      if (known.logged?.isUnclear === false) return receipt;
      if (logged !== undefined) await scope.inbox.accept(turn);
      await this.number(scope, turn);
      await this.repair(scope, turn);
      return receipt;
    }
    // The turn ran between our check and our write.
    await this.#forget(scope, written);
    return replay({ turnId: turn.turnId, sessionId: known.sessionId, requestHash: known.requestHash }, input);
  }

  /**
   * Without Redis only files show that a message was accepted before. A turn that has none yet is in the log of the
   * process that accepted it.
   * @returns the receipt of the same message, accepted before
   */
  async #fileOrAttach(scope: TenantScope, { input, turn, logged }: Written): Promise<TurnReceipt | undefined> {
    if (logged === undefined) return undefined;
    const isDerived = input.dedupeId !== null;
    const elsewhere = isDerived ? await this.#options.accepted.findElsewhere(turn, logged) : undefined;
    const exists = (await scope.inbox.accept(elsewhere ?? turn)) === 'exists';
    if (elsewhere === undefined && !(exists && isDerived)) return undefined;
    await logged.settle();
    return this.attach(scope, input, turn);
  }

  /**
   * A turn of the session has a number, so this turn gets the next one before its file is visible. The turns before it
   * are put into the lane first: the outcome of this turn depends on them. A turn that may be refused gets its number
   * together with its place, or none.
   */
  async #joinOrder(scope: TenantScope, { busy }: TurnInput, turn: AcceptedTurn): Promise<void> {
    const isKnown = await scope.inbox.has(turn.turnId);
    if (!isKnown && busy !== 'reject') await scope.laneOrder.claim(turn.sessionId, turn.turnId);
    await this.repair(scope, turn);
  }

  protected async number(scope: TenantScope, { sessionId, turnId }: AcceptedTurn): Promise<void> {
    await scope.laneOrder.claim(sessionId, turnId);
    await failpoint('accept.after-number');
  }

  protected async repair(scope: TenantScope, turn: AcceptedTurn): Promise<void> {
    await this.#repair.repair(scope, turn).catch((error: unknown) => this.#warn(error, turn, 'the lane is put in order later'));
  }

  async #forget(scope: TenantScope, { turn: { sessionId, turnId }, logged }: Written): Promise<void> {
    if (logged !== undefined) return logged.settle();
    await scope.inbox.remove(turnId);
    if (await scope.laneOrder.isUsed(sessionId)) await scope.laneOrder.remove(sessionId, [turnId]);
  }

  #warn(error: unknown, { turnId }: AcceptedTurn, message: string): void {
    this.#options.log.warn({ err: error, turnId }, message);
  }

  /**
   * Asks a turn to stop, wherever it runs or waits. The flag on disk outlives Redis.
   * @returns false when it is not live
   */
  async requestCancel(scope: TenantScope, turnId: string): Promise<boolean> {
    if ((await scope.inbox.read(turnId)) === undefined) return false;
    await scope.inbox.markCancelled(turnId);
    background(this.#options.wakeupQueue.wake(await this.#options.lanes.cancel({ tenantId: scope.tenantId, turnId })), this.#options.log);
    return true;
  }

  /** Cancels the answer before a turn that interrupts; a staff member's message is sent all the same. */
  async #interruptHead(scope: TenantScope, headTurnId: string): Promise<void> {
    const head = await scope.inbox.read(headTurnId);
    if (head?.origin !== 'person') await this.requestCancel(scope, headTurnId);
  }

  protected async attach(scope: TenantScope, input: TurnInput, turn: AcceptedTurn): Promise<TurnReceipt> {
    const first = (await this.#options.accepted.findOwn(turn.turnId)) ?? (await scope.inbox.read(turn.turnId));
    if (first === undefined) {
      const duplicate = await findDuplicate(this.#options.redis, scope, turn);
      if (duplicate !== null) return replay(duplicate, input);
      throw new AppError('overloaded', 'This request is already in progress. Retry in a second.', { retryAfterSeconds: 1 });
    }
    const receipt = replay(first, input);
    if (input.busy !== 'reject') await this.#enqueueDuplicate(scope, input, first);
    return receipt;
  }

  /**
   * The process that wrote the turn may have died before the turn had its place, and the caller now gets the answer
   * that it is accepted: the caller's next message must not overtake it. With `reject`, the place decides whether the
   * turn is accepted at all; the reconciler handles that turn.
   */
  async #enqueueDuplicate(scope: TenantScope, { busy, debounceMs }: TurnInput, first: AcceptedTurn): Promise<void> {
    // What gets a place without the log needs its file: the first call may not have reached the lane.
    if ((await this.#options.accepted.findOwn(first.turnId)) !== undefined) await scope.inbox.accept(first);
    try {
      const cancelled = await scope.inbox.isCancelled(first.turnId);
      const placed = await this.#options.lanes.enqueue(first, { busy, debounceMs, found: 'orphan', cancelled });
      if (placed.kind === 'enqueued' && placed.dueInMs !== null) this.#debounceTimer.expect(placed.dueInMs);
      if (await scope.laneOrder.isUsed(first.sessionId)) await this.#repair.repair(scope, first);
    } catch (error) {
      this.#warn(error, first, 'accepted before, and perhaps not yet in its lane');
      // The turn may have its place already; it certainly needs one.
      await scope.laneOrder.mention(first.sessionId, first.turnId);
    }
  }

  protected now(): number {
    return (this.#options.now ?? Date.now)();
  }

  /** Stops the timer of lanes that are debounced; reconcilers start what still waits. */
  async stop(): Promise<void> {
    await this.#debounceTimer.stop();
  }
}

function toAccepted(input: TurnInput, facts: Pick<AcceptedTurn, 'turnId' | 'sessionId' | 'acceptedAtMs' | 'tenantId'>): AcceptedTurn {
  const { busy, debounceMs: _debounceMs, contactId: _contactId, dedupeId: _dedupeId, ...kept } = input;
  const collects = busy === 'collect' ? { collects: true as const } : {};
  return { ...kept, ...collects, ...facts, version: 1 };
}
