import type { TenantScope } from '@concierge/tenant';
import type { WakeupQueue } from './wakeup-queue.ts';
import type { Lanes, Lease } from './lanes.ts';

export interface LaneRepairOptions {
  readonly lanes: Pick<Lanes, 'enqueue' | 'order'>;
  readonly wakeupQueue: Pick<WakeupQueue, 'wake'>;
}

/** Puts lanes into the order of acceptance that the disk records (docs/decisions/0004-order-of-acceptance.md). */
export class LaneRepair {
  readonly #options: LaneRepairOptions;

  constructor(options: LaneRepairOptions) {
    this.#options = options;
  }

  /**
   * Gives every numbered turn of the session on disk its place: behind turns without a number, in the order of the
   * numbers. A turn that another worker runs stays first. `own`: the caller's lease of the head, given up when another
   * turn comes before it.
   * @returns whether that was so
   */
  async repair(scope: TenantScope, { sessionId }: { readonly sessionId: string }, own?: Lease): Promise<boolean> {
    const { lanes, wakeupQueue } = this.#options;
    const { numbered, mentioned } = await scope.laneOrder.read(sessionId);
    const gone: string[] = [];
    for (const turnId of [...mentioned, ...numbered]) {
      const turn = await scope.inbox.read(turnId);
      // The gateway is about to write the file, or died before it could; or the turn has ended.
      if (turn === undefined) {
        gone.push(turnId);
        continue;
      }
      const cancelled = await scope.inbox.isCancelled(turnId);
      await lanes.enqueue(turn, { busy: 'queue', found: 'orphan', cancelled });
    }
    const { moved, wakeups } = await lanes.order({ tenantId: scope.tenantId, sessionId }, numbered, own);
    await wakeupQueue.wake(wakeups);
    await this.#forgetEnded(scope, sessionId, gone);
    return moved;
  }

  async #forgetEnded(scope: TenantScope, sessionId: string, gone: readonly string[]): Promise<void> {
    const ended: string[] = [];
    for (const turnId of gone) if ((await scope.sessions.findTurn(sessionId, turnId)) !== undefined) ended.push(turnId);
    await scope.laneOrder.remove(sessionId, ended);
  }
}

/**
 * The turns behind a head that are next in order of acceptance: turns without a number as the lane has them, then
 * numbered ones in the order of their numbers (a late repair may have placed them otherwise for a moment); none that
 * overtakes a turn which is on disk and not in the lane yet.
 */
export async function withoutOvertaking(
  scope: TenantScope,
  { sessionId, turnId: head }: { readonly sessionId: string; readonly turnId: string },
  behind: readonly string[],
): Promise<readonly string[]> {
  const { numbered } = await scope.laneOrder.read(sessionId);
  const waiting = new Set(behind);
  const known = new Set(numbered);
  const next = behind.filter((turnId) => !known.has(turnId));
  for (const turnId of numbered) {
    if (waiting.has(turnId)) next.push(turnId);
    else if (turnId !== head && (await scope.inbox.has(turnId))) break;
  }
  return next;
}
