import { z } from 'zod';
import { TurnStatus } from '@concierge/contract';

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
/** Tried one after the other: first what most turns get. */
export const EnqueuedReply = z.union([
  z.tuple([z.literal('enqueued'), z.string(), z.number(), z.number(), z.enum(['0', '1'])]),
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
export const FoundReply = z.array(z.tuple([z.string(), WakeupReply]));
export const DueReply = z.tuple([FoundReply, z.number()]);
export const OpenReply = z.tuple([z.number(), FoundReply]);
/**
 * `lost`: the lease belongs to another. `cut`: the stream lacks entries that were written before. Nothing was written
 * then.
 */
export const FinishReply = z.enum(['finished', 'lost', 'cut']);
export type Finished = z.infer<typeof FinishReply>;
export const OrderReply = z.tuple([z.number(), z.array(WakeupReply)]);
export const ReadinessReply = z.tuple([z.number(), z.string()]);
