import { z } from 'zod';
import { Actor } from '../values/actor.ts';
import { MessagingChannel } from './channel.ts';
import { ContactId } from '../turns/chat.ts';
import { OutboundId, OutboundKind } from './outbound.ts';
import { AgentName } from '../tenants/tenant.ts';

/**
 * What became of a message: waiting → sent (the provider has all of it) → delivered → read, as far as the provider
 * reports. Or one of these, which staff may look at: `failed`, `unknown` (it may have been sent or not, and is not sent
 * again), `expired` (its time was over first), `withheld` (it must not be sent: a staff member has the conversation, or
 * the reply window is closed).
 */
export const deliveryStates = ['waiting', 'sent', 'delivered', 'read', 'failed', 'unknown', 'expired', 'withheld'] as const;
export const DeliveryState = z.enum(deliveryStates);
export type DeliveryState = z.infer<typeof DeliveryState>;

/**
 * Receipts come out of order; only a later one of this list changes anything. A provider may report that what it took
 * has failed after all.
 */
export const receiptStates = ['sent', 'failed', 'delivered', 'read', 'played'] as const;
export const ReceiptState = z.enum(receiptStates);
export type ReceiptState = z.infer<typeof ReceiptState>;

/**
 * Why something was not sent: the provider's own code, or one of ours. No credential and no text of a message in it.
 */
export const DeliveryProblem = z.object({ code: z.string().max(100), message: z.string().max(500) });
export type DeliveryProblem = z.infer<typeof DeliveryProblem>;

/** What one try came to; see `SendOutcome` of the channels. */
export const TryOutcome = z.enum([
  'sent',
  'retry',
  'resend_plain',
  'resend_without_reply',
  'resend_to',
  'window_closed',
  'refused',
  'recipient_failed',
  'binding_failed',
  'unknown',
]);

/**
 * A line of a message's journal. What is sent is rendered once (`parts`), so that every try sends the same. Each try
 * leaves a claim before it begins and a `result` after it. `end`: it is not to be sent any further, for a reason of
 * ours. `redrive`: the operator has all parts that did not arrive sent again.
 */
export const DeliveryStep = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('parts'), at: z.iso.datetime(), parts: z.array(z.object({ text: z.string(), plain: z.string() })) }),
  z.object({
    kind: z.literal('result'),
    at: z.iso.datetime(),
    part: z.int().nonnegative(),
    try: z.int().positive(),
    outcome: TryOutcome,
    /** When the provider was called: its time of a message is not before this. */
    begunAt: z.iso.datetime().optional(),
    providerMessageId: z.string().optional(),
    problem: DeliveryProblem.optional(),
    /** For `resend_to`: the new address. */
    to: z.string().optional(),
    /** For `retry`: not before this; null when that was the last try. */
    retryAt: z.iso.datetime().nullable().optional(),
  }),
  z.object({
    kind: z.literal('end'),
    at: z.iso.datetime(),
    state: z.enum(['failed', 'expired', 'withheld']),
    problem: DeliveryProblem,
  }),
  z.object({ kind: z.literal('redrive'), at: z.iso.datetime(), by: Actor, expiresAt: z.iso.datetime() }),
  z.object({
    kind: z.literal('receipt'),
    at: z.iso.datetime(),
    part: z.int().nonnegative(),
    state: ReceiptState,
    problem: DeliveryProblem.optional(),
  }),
]);
export type DeliveryStep = z.infer<typeof DeliveryStep>;

export const DeliveryPartView = z.object({
  text: z.string(),
  state: z.enum(['waiting', 'sent', 'delivered', 'read', 'failed', 'unknown']),
  /** How often it was tried. */
  tries: z.int().nonnegative(),
  /** Not tried again before; null when nothing keeps it. */
  retryAt: z.iso.datetime().nullable(),
  providerMessageId: z.string().nullable(),
  problem: DeliveryProblem.nullable(),
});

/** A message and what became of it. `parts` only on the single one; none before it was tried. */
export const DeliveryView = z
  .object({
    id: OutboundId,
    kind: OutboundKind,
    channel: MessagingChannel,
    to: z.string(),
    thread: z.string().nullable(),
    contact_id: ContactId,
    agent: AgentName,
    turnId: z.string(),
    state: DeliveryState,
    problem: DeliveryProblem.nullable(),
    acceptedAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    text: z.string(),
    parts: z.array(DeliveryPartView).optional(),
  })
  .meta({ id: 'Delivery' });
export type DeliveryView = z.infer<typeof DeliveryView>;
