import type { Redis } from 'ioredis';
import { AppError, limits, type AcceptedTurn, type TurnInput } from '@concierge/contract';
import { background, failpoint, type Log } from '@concierge/runtime';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import type { WakeupQueue } from './wakeup-queue.ts';
import { keyOf } from '../keys.ts';
import { LaneRepair } from './lane-repair.ts';
import { mayWait, type Lanes, type EnqueueOutcome } from './lanes.ts';
import { DebounceTimer } from './debounce-timer.ts';
import { findDuplicate, findEnded, replay, type Duplicate, type TurnReceipt } from './duplicates.ts';
import { deriveFreshSender, newTurnId, deriveTurnId } from '../turn-ids.ts';

export interface AcceptOptions {
  readonly redis: Redis;
  readonly lanes: Lanes;
  readonly wakeupQueue: WakeupQueue;
  readonly log: Log;
  readonly now?: () => number;
}

/**
 * The only way in. Order is part of the meaning: session key and limits; then the inbox file, fsynced, from which on
 * the turn is accepted; then its place in the lane; then the wake-up. A failure after the file is no error to the
 * caller: the reconciler finishes the work. A turn that gets no place in its lane gets a number on disk before the
 * caller gets its answer, so that no later turn overtakes it.
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
    const { turn, ended } = await this.prepare(scope, input, this.now());
    if (ended !== null) return replay(ended, input);
    const isNumbered = await scope.laneOrder.isUsed(turn.sessionId);
    if (isNumbered) await this.#joinOrder(scope, input, turn);
    if ((await scope.inbox.accept(turn, { isUnique: input.dedupeId === null })) === 'exists') return await this.attach(scope, input, turn);
    await failpoint('accept.after-inbox');
    const receipt = await this.settle(scope, { input, turn }, await this.enqueue(input, turn));
    if (isNumbered && input.busy === 'reject') await scope.laneOrder.claim(turn.sessionId, turn.turnId);
    return receipt;
  }

  /** Builds the new turn, or finds the one that the same request made earlier. */
  protected async prepare(scope: TenantScope, input: TurnInput, acceptedAtMs: number): Promise<Prepared> {
    const turnId = input.dedupeId === null ? newTurnId() : deriveTurnId(await scope.identity(), input.dedupeId);
    const sessionId = await this.#resolveSession(scope, input, turnId);
    // The duplicate check in Redis is part of the enqueue script: nearly all messages are new.
    const ended = input.dedupeId === null ? null : await findEnded(scope, turnId, sessionId);
    return { input, ended, turn: toAccepted(input, { turnId, sessionId, acceptedAtMs, tenantId: scope.tenantId }) };
  }

  /**
   * Null: not enqueued yet. The turn is on disk and so accepted. The reconciler enqueues it as soon as Redis answers.
   */
  protected async enqueue({ busy, debounceMs }: TurnInput, turn: AcceptedTurn): Promise<EnqueueOutcome | null> {
    return this.#options.lanes.enqueue(turn, { busy, debounceMs, found: 'accepted' }).catch((error: unknown) => {
      this.#warn(error, turn, 'accepted, but not yet in its lane');
      return null;
    });
  }

  protected async settle(
    scope: TenantScope,
    { input, turn }: { readonly input: TurnInput; readonly turn: AcceptedTurn },
    placed: EnqueueOutcome | null,
  ): Promise<TurnReceipt> {
    const receipt = { turnId: turn.turnId, sessionId: turn.sessionId, replayed: false };
    if (placed === null) {
      await this.number(scope, turn);
      return receipt;
    }
    switch (placed.kind) {
      case 'enqueued': {
        if (placed.isUnclear) await this.number(scope, turn);
        await failpoint('accept.after-lane');
        this.#letRun(placed);
        if (input.busy === 'interrupt' && placed.waitingBefore > 0) await this.requestCancel(scope, placed.headTurnId);
        return receipt;
      }
      case 'busy': {
        await this.#forget(scope, turn);
        throw new AppError('session_busy', 'The session is busy with another turn.', { retryAfterSeconds: 1 });
      }
      case 'full': {
        await this.#forget(scope, turn);
        const bounds = `${String(mayWait(input.busy))} turns may wait in a session, and ${String(limits.tenantMaxWaiting)} sessions of a tenant`;
        throw new AppError('too_many_waiting', `At most ${bounds}.`, { retryAfterSeconds: 5 });
      }
      case 'exists': {
        // Waiting or running: the reconciler enqueued our file before this process did. Ended: the turn ran between our
        // check and our write.
        if (placed.state === 'waiting' || placed.state === 'running') {
          // The turn may be enqueued by its acceptance time: an earlier turn from another clock may stand before it
          // now.
          await this.number(scope, turn);
          await this.repair(scope, turn);
          return receipt;
        }
        await this.#forget(scope, turn);
        return replay({ turnId: turn.turnId, sessionId: placed.sessionId, requestHash: placed.requestHash }, input);
      }
    }
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

  async #forget(scope: TenantScope, { sessionId, turnId }: AcceptedTurn): Promise<void> {
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
    background(this.#options.wakeupQueue.wake(await this.#options.lanes.cancel(turnId)), this.#options.log);
    return true;
  }

  async #resolveSession(scope: TenantScope, input: TurnInput, turnId: string): Promise<string> {
    if (input.sender !== null) {
      const derived = deriveSessionId(input.agent, input.channel, input.sender);
      if (input.contactId !== null && input.contactId !== derived) throw new AppError('contact_mismatch');
      return derived;
    }
    if (input.contactId === null) return deriveSessionId(input.agent, input.channel, deriveFreshSender(turnId));
    const agent = await this.#findAgent(scope, input.contactId);
    if (agent !== input.agent) throw new AppError('not_found', 'No session of this agent has this contact_id.');
    return input.contactId;
  }

  /** A session exists once its first turn is accepted, which is before its file does. */
  async #findAgent(scope: TenantScope, sessionId: string): Promise<string | null> {
    const session = await scope.sessions.load(sessionId);
    if (session !== undefined) return session.agent;
    const { redis, lanes } = this.#options;
    const unknown = (cause?: unknown): AppError =>
      new AppError('overloaded', 'The service cannot look the session up right now.', { cause, retryAfterSeconds: 2 });
    const [agent, { isReady }] = await Promise.all([
      redis.hget(keyOf.lease({ tenantId: scope.tenantId, sessionId }), 'agent'),
      lanes.readiness(),
    ]).catch((error: unknown) => {
      throw unknown(error);
    });
    // The session's first turn may wait in the inbox.
    if (agent === null && !isReady) throw unknown();
    return agent;
  }

  protected async attach(scope: TenantScope, input: TurnInput, turn: AcceptedTurn): Promise<TurnReceipt> {
    const first = await scope.inbox.read(turn.turnId);
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
    try {
      const cancelled = await scope.inbox.isCancelled(first.turnId);
      const placed = await this.#options.lanes.enqueue(first, { busy, debounceMs, found: 'orphan', cancelled });
      if (placed.kind === 'enqueued') this.#letRun(placed);
      if (await scope.laneOrder.isUsed(first.sessionId)) await this.#repair.repair(scope, first);
    } catch (error) {
      this.#warn(error, first, 'accepted before, and perhaps not yet in its lane');
      // The turn may have its place already; it certainly needs one.
      await scope.laneOrder.mention(first.sessionId, first.turnId);
    }
  }

  #letRun({ wakeups, dueInMs }: Extract<EnqueueOutcome, { kind: 'enqueued' }>): void {
    background(this.#options.wakeupQueue.wake(wakeups), this.#options.log);
    if (dueInMs !== null) this.#debounceTimer.expect(dueInMs);
  }

  protected now(): number {
    return (this.#options.now ?? Date.now)();
  }

  /** Stops the timer of lanes that are debounced; reconcilers start what still waits. */
  async stop(): Promise<void> {
    await this.#debounceTimer.stop();
  }
}

interface Prepared {
  readonly input: TurnInput;
  readonly turn: AcceptedTurn;
  /** The turn was accepted before and has ended. */
  readonly ended: Duplicate | null;
}

function toAccepted(input: TurnInput, facts: Pick<AcceptedTurn, 'turnId' | 'sessionId' | 'acceptedAtMs' | 'tenantId'>): AcceptedTurn {
  const { busy, debounceMs: _debounceMs, contactId: _contactId, dedupeId: _dedupeId, ...kept } = input;
  const collects = busy === 'collect' ? { collects: true as const } : {};
  return { ...kept, ...collects, ...facts, version: 1 };
}
