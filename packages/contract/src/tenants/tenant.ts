import { z } from 'zod';
import { AppName } from '../channels/channel.ts';
import { Duration, TimeZone, limitedRecord } from '../values/values.ts';
import { limits } from '../limits.ts';
import { RetentionPatch, RetentionRule } from './retention.ts';

export const tenantIdPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/u;
export const TenantId = z.string().regex(tenantIdPattern, 'must be 1 to 63 lower-case letters, digits and inner hyphens');

export const agentNamePattern = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/u;
export const AgentName = z.string().regex(agentNamePattern, 'is not an agent name').meta({ id: 'AgentName' });

/** As `provider/model`. */
export const ModelRef = z
  .string()
  .max(limits.modelNameMaxCharacters)
  .regex(/^[^/\s]+\/\S+$/u, 'must read provider/model');

export const TenantPlan = z.enum(['preview', 'standard']);

const AgentSettings = z.strictObject({
  maxTurns: z.int().min(1).max(limits.maxTurnsMax).optional(),
  model: ModelRef.optional(),
  tools: z.array(z.string().max(100)).max(limits.settingsEntriesMax).optional(),
});

const ChannelSettings = z.strictObject({
  busy: z.enum(['collect', 'queue', 'interrupt', 'reject']).optional(),
  debounceMs: z.int().min(0).max(60_000).optional(),
});
const channelName = z.string().max(100);

/** A contact on a channel. */
const Recipient = z.strictObject({
  channel: AppName,
  to: z.string().min(1).max(limits.senderMaxCharacters),
});

const HandoffSettings = z.strictObject({
  /** Who is notified on a channel that a conversation waits for staff. */
  notify: Recipient.optional(),
  /** What the contact gets when their conversation is handed over; nothing without it. */
  notice: z.string().trim().min(1).max(limits.handoffReasonMaxCharacters).optional(),
  /** After so many hours the agent goes on by itself, unless the handoff gives another number. */
  hours: z.number().positive().max(limits.handoffMaxHours).optional(),
});

const FailureSettings = z.strictObject({
  /** `say`: a sentence. `handoff`: the conversation waits for staff, and the contact is notified. `silent`: nothing. */
  action: z.enum(['say', 'handoff', 'silent']).optional(),
  /** The sentence, in the contacts' language; one in English without it. */
  notice: z.string().trim().min(1).max(limits.handoffReasonMaxCharacters).optional(),
});

const HeartbeatSettings = z.strictObject({
  every: Duration.optional(),
  /** Where its text goes; by default to the place of `handoff.notify`. */
  deliver: Recipient.optional(),
  activeHours: z
    .string()
    .regex(/^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$/u, 'must read 08:00-20:00')
    .optional(),
});

/** tenants/<id>/tenant.json (contract §2). Every field is optional but `plan`. */
export const TenantSettings = z
  .strictObject({
    plan: TenantPlan,
    name: z.string().max(200).optional(),
    suspended: z.boolean().optional(),
    timezone: TimeZone.optional(),
    model: ModelRef.optional(),
    limits: z
      .strictObject({
        requestsPerHour: z.int().positive().optional(),
        memoryBytes: z.int().positive().optional(),
        workspaceBytes: z.int().positive().optional(),
        streamCharactersPerHour: z.int().positive().optional(),
        /**
         * Budgets: what model calls may take in one day and one month of the tenant's time zone (`timezone`, else UTC):
         * input and output tokens; US dollars at the prices of the providers file.
         */
        tokensPerDay: z.int().positive().max(limits.budgetTokensMax).optional(),
        tokensPerMonth: z.int().positive().max(limits.budgetTokensMax).optional(),
        usdPerDay: z.number().positive().max(limits.budgetUsdMax).optional(),
        usdPerMonth: z.number().positive().max(limits.budgetUsdMax).optional(),
        /** The zone of these days and months, where it is not the tenant's: an owner's change would begin a new day. */
        budgetTimezone: TimeZone.optional(),
        /** At this share of a budget schedules and the heartbeat stop, so that people are answered longer. */
        scheduleBudgetShare: z.number().min(0).max(1).optional(),
      })
      .optional(),
    agents: limitedRecord(AgentName, AgentSettings, limits.settingsEntriesMax).optional(),
    channels: limitedRecord(channelName, ChannelSettings, limits.settingsEntriesMax).optional(),
    handoff: HandoffSettings.optional(),
    /**
     * What a contact on a channel gets in place of an answer when a turn fails. An API's client gets the error, as
     * ever.
     */
    onFailure: FailureSettings.optional(),
    heartbeat: HeartbeatSettings.optional(),
    retention: RetentionRule.optional(),
  })
  .meta({ id: 'TenantSettings' });
export type TenantSettings = z.infer<typeof TenantSettings>;

const agent = AgentSettings.shape;
const AgentPatch = z.strictObject({
  maxTurns: agent.maxTurns.nullable(),
  model: agent.model.nullable(),
  tools: agent.tools.nullable(),
});

const channel = ChannelSettings.shape;
const ChannelPatch = z.strictObject({ busy: channel.busy.nullable(), debounceMs: channel.debounceMs.nullable() });

const handoff = HandoffSettings.shape;
const HandoffPatch = z.strictObject({
  notify: handoff.notify.nullable(),
  notice: handoff.notice.nullable(),
  hours: handoff.hours.nullable(),
});

const failure = FailureSettings.shape;
const FailurePatch = z.strictObject({ action: failure.action.nullable(), notice: failure.notice.nullable() });

const heartbeat = HeartbeatSettings.shape;
const HeartbeatPatch = z.strictObject({
  every: heartbeat.every.nullable(),
  deliver: heartbeat.deliver.nullable(),
  activeHours: heartbeat.activeHours.nullable(),
});

/**
 * What PATCH /api/tenant may change: what the operator decides (plan, suspension, limits) is not the owner's. JSON
 * merge patch (RFC 7396): null removes a setting, or one within it, and leaves the others.
 */
export const TenantPatch = z
  .strictObject({
    name: TenantSettings.shape.name.unwrap().nullable().optional(),
    timezone: TenantSettings.shape.timezone.unwrap().nullable().optional(),
    model: TenantSettings.shape.model.unwrap().nullable().optional(),
    agents: limitedRecord(AgentName, AgentPatch.nullable(), limits.settingsEntriesMax).nullable().optional(),
    channels: limitedRecord(channelName, ChannelPatch.nullable(), limits.settingsEntriesMax).nullable().optional(),
    handoff: HandoffPatch.nullable().optional(),
    onFailure: FailurePatch.nullable().optional(),
    heartbeat: HeartbeatPatch.nullable().optional(),
    retention: RetentionPatch.nullable().optional(),
  })
  .meta({ id: 'TenantPatch' });
export type TenantPatch = z.infer<typeof TenantPatch>;
