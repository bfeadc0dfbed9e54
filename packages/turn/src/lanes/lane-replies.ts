import { z } from 'zod';
import { TurnStatus } from '@concierge/contract';
import type { ScriptReply } from '@concierge/runtime';
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
      readonly wakeups: readonly Wakeup[];
      /** When the debounced lane is due; null: the lane is not debounced. */
      readonly dueInMs: number | null;
      /** When Redis loses the turn, times of acceptance do not determine its place: it needs a number on disk. */
      readonly isUnclear: boolean;
    };

const WakeupReply = z.tuple([z.string(), z.string(), z.number(), z.number(), z.number()]);
/** Tried one after the other: first what most turns get. */
export const EnqueuedReply = z.union([
  z.tuple([z.literal('enqueued'), z.string(), z.number(), z.array(WakeupReply), z.number(), z.enum(['0', '1'])]),
  z.tuple([z.literal('exists'), TurnStatus, z.string(), z.string(), z.string(), z.enum(['0', '1'])]),
  z.tuple([z.literal('busy')]),
  z.tuple([z.literal('full')]),
]);
export const LeaseReply = z.union([
  z.tuple([
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
  ]),
  z.tuple([z.literal('idle'), z.array(WakeupReply)]),
  z.tuple([z.literal('held')]),
  z.tuple([z.literal('alone'), z.string(), z.number()]),
]);
export const AppendReply = z.number();
export const ReleaseReply = z.array(WakeupReply);
export const RenewReply = z.tuple([z.array(z.string()), z.array(z.string()), z.number()]);
const FoundReply = z.array(z.tuple([z.string(), WakeupReply]));
export const DueReply = z.tuple([FoundReply, z.number()]);
export const OpenReply = z.tuple([z.number(), FoundReply]);
export const FinishReply = z.union([
  z.tuple([z.literal('finished'), z.array(WakeupReply)]),
  z.tuple([z.literal('lost')]),
  z.tuple([z.literal('cut')]),
]);
export const OrderReply = z.tuple([z.number(), z.array(WakeupReply)]);
export const ReadinessReply = z.tuple([z.number(), z.string()]);

export function toWakeups(tenantId: string, replies: readonly z.infer<typeof WakeupReply>[]): Wakeup[] {
  return replies.map(([sessionId, turnId, backlog, at, depth]) => ({ tenantId, sessionId, turnId, backlog, at, depth }));
}

export function readWakeups(reply: ScriptReply): Wakeup[] {
  return FoundReply.parse(reply).flatMap(([tenantId, wake]) => toWakeups(tenantId, [wake]));
}

export function toEnqueueOutcome(tenantId: string, reply: z.infer<typeof EnqueuedReply>): EnqueueOutcome {
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
      const [, headTurnId, waitingBefore, wakeups, dueIn, unclear] = reply;
      const facts = { dueInMs: dueIn < 0 ? null : dueIn, isUnclear: unclear === '1' };
      return { kind: 'enqueued', headTurnId, waitingBefore, wakeups: toWakeups(tenantId, wakeups), ...facts };
    }
  }
}
