import { z } from 'zod';
import { Actor } from '../values/actor.ts';
import { CanonicalChannel } from '../channels/channel.ts';
import { ChannelMessage } from '../channels/channel-message.ts';
import { Usage, UploadRef } from './chat.ts';
import { DeliveryView } from '../channels/delivery.ts';
import { errorCodeNames } from '../errors/error-code.ts';
import { FinishReason } from './turn-event.ts';
import { AgentName, TenantId } from '../tenants/tenant.ts';
import { openList } from '../values/stored.ts';
import { WaitReason, WaitsFor } from './waiting.ts';

/**
 * Who asked: decides nothing about rights, only about where a reply may go and what a list shows. `handoff`: the
 * owner's agent is notified that a conversation waits for staff. `person`: no question, a staff member writes in the
 * agent's place, and no model is called. `retraction`: the sender took a message back, whose text is taken out of the
 * conversation; no model is called, and nothing is sent.
 */
export const TurnOrigin = z.enum(['api', 'webhook', 'schedule', 'heartbeat', 'subagent', 'handoff', 'person', 'retraction']);

/** What the turn may do, fixed when it is accepted: the minimum of the key's scopes and of its starter's. */
export const Authority = z.enum(['admin', 'cs']);
export type Authority = z.infer<typeof Authority>;

/** What a turn was handed by the one that started it: at most as much as that one has itself. */
export const TurnGrant = z.object({
  parentTurnId: z.string(),
  /** How many turns stand above this one. */
  depth: z.int().positive(),
  /** Names of the tools that it may have at most; what its agent lacks it does not gain. */
  tools: z.array(z.string()),
});
export type TurnGrant = z.infer<typeof TurnGrant>;

/** A channel's request, parsed: exactly what every channel builds. */
export const TurnInput = z.object({
  origin: TurnOrigin,
  agent: AgentName,
  authority: Authority,
  channel: CanonicalChannel,
  /** Stable identifier of a contact; null for an anonymous or an admin conversation. */
  sender: z.string().nullable(),
  /** Continues this session. */
  contactId: z.string().nullable(),
  text: z.string(),
  /** The calling application's instructions before it: for the model alone, and not part of the message. */
  preface: z.string().optional(),
  attachments: z.array(UploadRef),
  /** `collect`: joins the turns of its conversation that wait, too, and is answered together with them. */
  busy: z.enum(['queue', 'reject', 'interrupt', 'collect']),
  /**
   * Only of `collect`: how long a conversation in which nothing runs is left waiting for more, in milliseconds; 0: not
   * at all.
   */
  debounceMs: z.int().nonnegative().optional(),
  /**
   * The channel's own id of this message (idempotency key, provider message id, schedule tick): a second one is the
   * same turn.
   */
  dedupeId: z.string().nullable(),
  /** SHA-256 (hex) of what must be equal for two messages with one `dedupeId` to be the same. */
  requestHash: z.string(),
  keyId: z.string().nullable(),
  /** Only of a turn that another turn started. */
  grant: TurnGrant.optional(),
  /** Names of the tools that it may have at most, from the schedule that started it. */
  tools: z.array(z.string()).optional(),
  /** Only for a message from a channel: the reply goes back to it. */
  channelMessage: ChannelMessage.optional(),
  /** Only for origin `person`: the staff member. */
  by: Actor.optional(),
  /** Only of a `retraction`: the turn whose words are taken back. */
  retracts: z.string().optional(),
  /** When its request arrived, in milliseconds since the epoch. */
  receivedAtMs: z.number().optional(),
  /** The caller's span (W3C Trace Context), which its own spans continue. */
  traceparent: z.string().max(64).optional(),
});
export type TurnInput = z.infer<typeof TurnInput>;

/** tenants/<id>/inbox/<turnId>.json: once this is on disk, the turn is accepted. */
export const AcceptedTurn = TurnInput.omit({ busy: true, debounceMs: true, contactId: true, dedupeId: true }).extend({
  version: z.literal(1),
  turnId: z.string(),
  tenantId: TenantId,
  sessionId: z.string(),
  /** Milliseconds since the epoch; order of acceptance when lanes are restored. */
  acceptedAtMs: z.number(),
  /** It may be answered together with others of its conversation that collect, too. */
  collects: z.literal(true).optional(),
});
export type AcceptedTurn = z.infer<typeof AcceptedTurn>;

/** The same turn as its inbox file spells it: `tenantId` is stored as `accountId`, `channelMessage` as `chatApp`. */
export const StoredTurn = AcceptedTurn.omit({ tenantId: true, channelMessage: true }).extend({
  accountId: TenantId,
  chatApp: ChannelMessage.optional(),
});
export type StoredTurn = z.infer<typeof StoredTurn>;

/** Waiting → running → one of the last three. Running → waiting when its worker died or was drained. */
export const TurnStatus = z.enum(['waiting', 'running', 'done', 'failed', 'cancelled']);
export type TurnStatus = z.infer<typeof TurnStatus>;

/** One finished step, as lists and the console show it. */
export const TurnStepView = z.object({
  kind: openList(z.enum(['model', 'tool', 'compaction'])),
  name: z.string(),
  /** The tool whose command made this call; only of calls through the dispatcher. */
  within: z.string().optional(),
  startedAt: z.iso.datetime(),
  durationMs: z.int().nonnegative(),
  isError: z.boolean(),
  usage: Usage.optional(),
  /** Of `usage`, what the provider took from its prompt cache. */
  cachedInputTokens: z.int().nonnegative().optional(),
  costUsd: z.number().nonnegative().optional(),
  /** Of a model call: from its beginning to its first text. */
  firstTextMs: z.int().nonnegative().optional(),
  /** Attempts at this call that failed before one was answered. */
  failedAttempts: z.int().positive().optional(),
});
export type TurnStepView = z.infer<typeof TurnStepView>;

export const ModelUsage = Usage.extend({
  model: z.string(),
  calls: z.int().nonnegative(),
  cachedInputTokens: z.int().nonnegative(),
  costUsd: z.number().nonnegative().nullable(),
  /** Called with the tenant's own key: its owner pays, and no budget counts it. */
  ownKey: z.literal(true).optional(),
});
export type ModelUsage = z.infer<typeof ModelUsage>;

/** How a turn failed, as its client reads it. `retryable` where it is not what the code usually is. */
const TurnError = z.object({ code: openList(z.enum(errorCodeNames)), message: z.string(), retryable: z.boolean().optional() });

/** A part of a prompt and its tokens, estimated by its length. */
export const PromptPart = z.object({
  name: z.string(),
  tokens: z.int().nonnegative(),
  digest: z
    .string()
    .regex(/^[0-9a-f]{16}$/u)
    .optional()
    .meta({ description: 'Of the text of a file whose versions are kept: the beginning of its SHA-256.' }),
});
export type PromptPart = z.infer<typeof PromptPart>;

/** What a record keeps of the turn's life beside its times and steps. Bounded: it is in the session file. */
export const TraceFacts = z.object({
  /** When its request arrived. */
  receivedAt: z.iso.datetime().optional(),
  /** From its acceptance to its first start, one wait after the other. */
  waits: z.array(z.object({ reason: openList(WaitReason), ms: z.int().nonnegative() })).max(8),
  prompt: z.object({ at: z.iso.datetime(), ms: z.int().nonnegative(), parts: z.array(PromptPart).max(64) }).optional(),
  /** The model that was to answer. */
  model: z.string().optional(),
});
export type TraceFacts = z.infer<typeof TraceFacts>;

/** What remains of an ended turn: lives in the session file, so that index and Redis can be thrown away. */
export const TurnRecord = z.object({
  id: z.string(),
  status: z.enum(['done', 'failed', 'cancelled']),
  origin: openList(z.enum(TurnOrigin.options)),
  acceptedAt: z.iso.datetime(),
  startedAt: z.iso.datetime().nullable(),
  firstTextAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime(),
  attempts: z.int().nonnegative(),
  usage: Usage,
  models: z.array(ModelUsage),
  finishReason: FinishReason.nullable(),
  error: TurnError.nullable(),
  steps: z.array(TurnStepView),
  requestHash: z.string(),
  keyId: z.string().nullable(),
  /** The turn that started it. */
  parentTurnId: z.string().optional(),
  /** The turn that answered it together with its own message. */
  joinedTo: z.string().optional(),
  /** No agent answered: a staff member had the conversation. */
  heldBack: z.literal('handoff').optional(),
  /** The model at which it failed, for operators. */
  failedModel: z.string().optional(),
  /** That model was called with the tenant's own key. */
  failedOnOwnKey: z.literal(true).optional(),
  /** Missing in records of earlier versions. */
  trace: TraceFacts.optional(),
});
export type TurnRecord = z.infer<typeof TurnRecord>;

/** GET /api/turns and /api/turns/{id}. `steps` and `deliveries` only on the single turn. */
export const TurnView = z
  .object({
    id: z.string(),
    contact_id: z.string(),
    agent: AgentName,
    channel: CanonicalChannel,
    origin: TurnOrigin,
    /** For a sub-agent's turn: the turn that started it. */
    parentTurnId: z.string().optional(),
    /** The turn that answered it together with its own message. */
    joinedTo: z.string().optional(),
    status: TurnStatus,
    acceptedAt: z.iso.datetime(),
    startedAt: z.iso.datetime().nullable().meta({ description: 'Null of a turn that has not begun, or was cancelled before it did.' }),
    firstTextAt: z.iso.datetime().nullable(),
    endedAt: z.iso.datetime().nullable(),
    attempts: z.int().nonnegative(),
    usage: Usage,
    costUsd: z.number().nonnegative().nullable().optional().meta({
      description: 'US dollars of an ended turn; null when no price is known, or no model was called.',
    }),
    input: z.string().optional().meta({
      description: 'The beginning of what it was asked, at most 200 characters; missing where the conversation no longer has it.',
    }),
    cancelling: z.literal(true).optional().meta({ description: 'It waits or runs, and is to be cancelled.' }),
    simulated: z.literal(true).optional().meta({
      description: 'The message was simulated (POST /api/channels/{channel}/simulate): nothing of it is sent to the provider.',
    }),
    finishReason: FinishReason.nullable(),
    error: TurnError.nullable(),
    steps: z.array(TurnStepView).optional(),
    /** Only of a turn that waits: why, and what would start it. */
    waitsFor: WaitsFor.optional(),
    /** What it has sent on channels, and what became of that. */
    deliveries: z.array(DeliveryView).optional(),
  })
  .meta({ id: 'Turn' });
export type TurnView = z.infer<typeof TurnView>;

/** GET /ops/api/turns: as lists show it, with its tenant. */
export const OperatedTurn = TurnView.omit({ steps: true, waitsFor: true, deliveries: true })
  .extend({ tenantId: TenantId })
  .meta({ id: 'OperatedTurn' });
export type OperatedTurn = z.infer<typeof OperatedTurn>;

/**
 * What has changed of a tenant: a hint to read it again, not the change itself. Kinds: `turn` (accepted, begun or
 * ended), `session` (removed, or in the lists later than its turn ended), `handoff` (requested, taken or given back),
 * `schedule` (changed, or a run of it), `delivery` (ended). Later versions may bring others.
 */
export const FeedChange = z.object({
  kind: z.enum(['turn', 'session', 'handoff', 'schedule', 'delivery']),
  id: z.string(),
  /** Of a turn: its conversation. */
  contact_id: z.string().optional(),
  /** Of a turn: its state when this was written. */
  status: TurnStatus.optional(),
});
export type FeedChange = z.infer<typeof FeedChange>;
