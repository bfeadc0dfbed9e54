import { z } from 'zod';
import { TurnStatus } from '@concierge/contract';
import type { Wakeup } from './wakeup-queue.ts';

export type EnqueueOutcome =
  | {
      readonly kind: 'exists';
      readonly state: TurnStatus;
      readonly requestHash: string;
      readonly sessionId: string;
      /** The log that it was accepted in, and as below, when it was enqueued; undefined for one that had a file. */
      readonly logged: { readonly logId: string; readonly isUnclear: boolean } | undefined;
    }
  | { readonly kind: 'busy' }
  | { readonly kind: 'full' }
  | {
      readonly kind: 'enqueued';
      readonly headTurnId: string;
      readonly waitingBefore: number;
      /** When the debounced lane is due; null: the lane is not debounced. */
      readonly dueInMs: number | null;
      /** When Redis loses the turn, times of acceptance do not determine its place: it needs a number on disk. */
      readonly isUnclear: boolean;
    };

export const WakeupReply = z.tuple([z.string(), z.string(), z.number(), z.number(), z.number()]);
/** Tried one after the other: first what most turns get, with the wake-ups to send where the script cannot. */
export const EnqueuedReply = z.union([
  z.tuple([z.literal('enqueued'), z.string(), z.number(), z.number(), z.enum(['0', '1']), z.array(WakeupReply).optional()]),
  z.tuple([z.literal('exists'), TurnStatus, z.string(), z.string(), z.string(), z.enum(['0', '1'])]),
  z.tuple([z.literal('busy')]),
  z.tuple([z.literal('full')]),
]);
const LeasedReply = z.tuple([
  z.literal('leased'),
  z.string(),
  z.string(),
  z.number(),
  z.number(),
  z.string(),
  z.string(),
  z.string(),
  z.number(),
  z.string(),
  z.enum(['0', '1']),
  z.string(),
]);
export const LeaseReply = z.union([
  LeasedReply,
  z.tuple([z.literal('idle'), z.array(WakeupReply)]),
  z.tuple([z.literal('held')]),
  z.tuple([z.literal('alone'), z.string(), z.number()]),
]);
export const AppendReply = z.number();
export const ReleaseReply = z.array(WakeupReply);
export const RenewReply = z.tuple([z.array(z.string()), z.array(z.string()), z.number()]);
export const FoundReply = z.array(z.tuple([z.string(), WakeupReply]));
export const DueReply = z.tuple([FoundReply, z.number()]);
export const OpenReply = z.tuple([z.number(), FoundReply]);
const Finished = z.enum(['finished', 'lost', 'cut']);
/**
 * `lost`: the lease belongs to another. `cut`: the stream lacks entries that were written before. Nothing was written
 * then. A list: finished, and the wake-ups to send where the script cannot.
 */
export const FinishReply = z.union([Finished, z.array(WakeupReply)]);
export type Finished = z.infer<typeof Finished>;
export const OrderReply = z.tuple([z.number(), z.array(WakeupReply)]);
export const ReadinessReply = z.tuple([z.number(), z.string()]);

export function toWakeups(tenantId: string, replies: readonly z.infer<typeof WakeupReply>[]): Wakeup[] {
  return replies.map(([sessionId, turnId, backlog, at, depth]) => ({ tenantId, sessionId, turnId, backlog, at, depth }));
}

export function readWakeups(reply: unknown): Wakeup[] {
  return FoundReply.parse(reply).flatMap(([tenantId, wake]) => toWakeups(tenantId, [wake]));
}

export function toEnqueueOutcome(reply: z.infer<typeof EnqueuedReply>): EnqueueOutcome {
  switch (reply[0]) {
    case 'exists': {
      const [, state, requestHash, sessionId, logId, isUnclear] = reply;
      const logged = logId === '' ? undefined : { logId, isUnclear: isUnclear === '1' };
      return { kind: 'exists', state, requestHash, sessionId, logged };
    }
    case 'busy':
    case 'full': {
      return { kind: reply[0] };
    }
    case 'enqueued': {
      const [kind, headTurnId, waitingBefore, dueIn, unclear] = reply;
      return { kind, headTurnId, waitingBefore, dueInMs: dueIn < 0 ? null : dueIn, isUnclear: unclear === '1' };
    }
  }
}

/** What a lease says of its turn (lanes.ts). */
export function readLease(reply: z.infer<typeof LeasedReply>) {
  const [, turnId, epoch, starts, attempt, restored, cancelled, startedAt, ageMs, cutEpoch, last, logged] = reply;
  return {
    turnId,
    epoch,
    starts,
    attempt,
    restored: restored === '1',
    orphan: restored === '2',
    cancelled: cancelled === '1',
    startedAtMs: Number(startedAt),
    ageMs,
    cutEpoch: cutEpoch === '' ? null : cutEpoch,
    isLastStart: last === '1',
    logged: logged === '' ? undefined : logged,
  };
}
