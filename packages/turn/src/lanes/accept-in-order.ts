import { AppError, type TurnInput } from '@concierge/contract';
import { failpoint } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import type { LoggedTurn, Written } from '../wal/open-log.ts';
import { TurnAcceptance } from './accept.ts';
import { replay, type Prepared, type TurnReceipt } from './duplicates.ts';
import type { EnqueueOutcome } from './lanes.ts';

/**
 * The outcome of each message, in their order: `session_busy` and `too_many_waiting` are outcomes. With a `failure`,
 * only the outcomes of the messages before it.
 */
export interface AcceptedInOrder {
  readonly outcomes: readonly (TurnReceipt | AppError)[];
  readonly failure: Error | undefined;
}

/** In the log, in a file of its own, or accepted before. */
type WrittenAs = LoggedTurn | 'filed' | 'exists';

interface Enqueued extends Written {
  readonly placing: Promise<EnqueueOutcome | null>;
}

/** Accepts messages that arrived together, beside single ones. */
export class OrderedAcceptance extends TurnAcceptance {
  /**
   * Like `accept`, for messages of one conversation that arrived together, in their order: their files share a sync,
   * and the commands to Redis are pipelined. Messages behind one that cannot be accepted are not accepted either.
   */
  async acceptInOrder(scope: TenantScope, inputs: readonly TurnInput[]): Promise<AcceptedInOrder> {
    const outcomes: (TurnReceipt | AppError)[] = [];
    try {
      // The first message goes alone: its result shows whether Redis keeps the order, and Redis has the script
      // afterwards.
      for (const input of inputs.slice(0, 1)) outcomes.push(await orRefusal(this.accept(scope, input)));
      await this.#acceptOthers(scope, inputs.slice(1), outcomes);
      return { outcomes, failure: undefined };
    } catch (error) {
      return { outcomes, failure: error instanceof Error ? error : new Error('acceptance failed', { cause: error }) };
    }
  }

  async #acceptOthers(scope: TenantScope, inputs: readonly TurnInput[], outcomes: (TurnReceipt | AppError)[]): Promise<void> {
    const nowMs = this.now();
    // Each message is a little later than the one before it: the times in the files record their order.
    const messages = await Promise.all(inputs.map(async (input, index) => this.prepare(scope, input, nowMs + (index + 1) / 1000)));
    const [first] = messages;
    if (first === undefined) return;
    if (await scope.laneOrder.isUsed(first.turn.sessionId)) {
      for (const input of inputs) outcomes.push(await orRefusal(this.accept(scope, input)));
      return;
    }
    const { written, failure } = await this.#writeAll(
      scope,
      messages.filter(({ ended }) => ended === null),
    );
    try {
      await this.#enqueueAll(scope, { messages, written }, outcomes);
    } finally {
      for (const one of written) if (typeof one !== 'string') one.release();
    }
    if (failure !== undefined) throw failure;
  }

  async #enqueueAll(
    scope: TenantScope,
    { messages, written }: { readonly messages: readonly Prepared[]; readonly written: readonly WrittenAs[] },
    outcomes: (TurnReceipt | AppError)[],
  ): Promise<void> {
    await failpoint('accept.after-inbox');
    const outcomesOnDisk = written.values();
    let enqueued: Enqueued[] = [];
    for (const message of messages) {
      const logged = message.ended === null ? outcomesOnDisk.next().value : 'exists';
      if (logged === undefined) break;
      if (logged !== 'exists') {
        const own = logged === 'filed' ? undefined : logged;
        enqueued.push({ ...message, logged: own, placing: this.enqueue(message.input, message.turn, own) });
        continue;
      }
      await this.#settleAll(scope, enqueued, outcomes);
      enqueued = [];
      outcomes.push(
        message.ended === null ? await orRefusal(this.attach(scope, message.input, message.turn)) : replay(message.ended, message.input),
      );
    }
    await this.#settleAll(scope, enqueued, outcomes);
  }

  /**
   * All in the log, with one write of it, or all in files that share one sync of their folder: never one on disk
   * without those before it.
   */
  async #writeAll(
    scope: TenantScope,
    messages: readonly Prepared[],
  ): Promise<{ readonly written: readonly WrittenAs[]; readonly failure: Error | undefined }> {
    const logged = await this.append(scope, messages);
    if (logged.every((one) => one !== undefined)) return { written: logged, failure: undefined };
    for (const one of logged) if (one !== undefined && one !== 'exists') await one.settle();
    const news = messages.filter((_, index) => logged[index] !== 'exists');
    const { created, failure } = await scope.inbox.acceptInOrder(news.map(({ turn }) => turn));
    const files = created.values();
    const written: ('filed' | 'exists')[] = [];
    for (const one of logged) {
      const isNew = one === 'exists' ? false : files.next().value;
      if (isNew === undefined) break;
      written.push(isNew ? 'filed' : 'exists');
    }
    return { written, failure };
  }

  /** When one message needs a number, so do all behind it. */
  async #settleAll(scope: TenantScope, enqueued: readonly Enqueued[], outcomes: (TurnReceipt | AppError)[]): Promise<void> {
    const last = enqueued.at(-1);
    if (last === undefined) return;
    let isNumbered = await scope.laneOrder.isUsed(last.turn.sessionId);
    for (const { input, turn, logged, placing } of enqueued) {
      const placed = await placing;
      if (isNumbered && placed?.kind === 'enqueued') {
        if (logged !== undefined) await scope.inbox.accept(turn);
        await this.number(scope, turn);
      }
      outcomes.push(await orRefusal(this.settle(scope, { input, turn, logged }, placed)));
      isNumbered ||= needsNumber(placed);
    }
    if (isNumbered) await this.repair(scope, last.turn);
  }
}

/** An outcome that only the lane can decide does not fail the messages behind it. */
async function orRefusal(accepting: Promise<TurnReceipt>): Promise<TurnReceipt | AppError> {
  return accepting.catch((error: unknown) => {
    if (error instanceof AppError && (error.code === 'session_busy' || error.code === 'too_many_waiting')) return error;
    throw error;
  });
}

/** Whether times of acceptance do not give the place: then no message behind it may be without a number. */
function needsNumber(placed: EnqueueOutcome | null): boolean {
  if (placed === null) return true;
  return placed.kind === 'enqueued' ? placed.isUnclear : placed.kind === 'exists' && placed.logged === undefined;
}
