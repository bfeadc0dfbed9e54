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
    agents: limitedRecord(
      AgentName,
      z.strictObject({
        maxTurns: z.int().min(1).max(limits.maxTurnsMax).optional(),
        model: ModelRef.optional(),
        tools: z.array(z.string().max(100)).max(limits.settingsEntriesMax).optional(),
      }),
      limits.settingsEntriesMax,
    ).optional(),
    channels: limitedRecord(
      z.string().max(100),
      z.strictObject({
        busy: z.enum(['collect', 'queue', 'interrupt', 'reject']).optional(),
        debounceMs: z.int().min(0).max(60_000).optional(),
      }),
      limits.settingsEntriesMax,
    ).optional(),
    handoff: z
      .strictObject({
        /** Who is notified on a channel that a conversation waits for staff. */
        notify: z
          .strictObject({
            channel: AppName,
            to: z.string().min(1).max(limits.senderMaxCharacters),
          })
          .optional(),
        /** What the contact gets when their conversation is handed over; nothing without it. */
        notice: z.string().trim().min(1).max(limits.handoffReasonMaxCharacters).optional(),
        /** After so many hours the agent goes on by itself, unless the handoff gives another number. */
        hours: z.number().positive().max(limits.handoffMaxHours).optional(),
      })
      .optional(),
    /**
     * What a contact on a channel gets in place of an answer when a turn fails. An API's client gets the error, as
     * ever.
     */
    onFailure: z
      .strictObject({
        /**
         * `say`: a sentence. `handoff`: the conversation waits for staff, and the contact is notified. `silent`:
         * nothing.
         */
        action: z.enum(['say', 'handoff', 'silent']).optional(),
        /** The sentence, in the contacts' language; one in English without it. */
        notice: z.string().trim().min(1).max(limits.handoffReasonMaxCharacters).optional(),
      })
      .optional(),
    heartbeat: z
      .strictObject({
        every: Duration.optional(),
        /** Where its text goes; by default to the place of `handoff.notify`. */
        deliver: z
          .strictObject({
            channel: AppName,
            to: z.string().min(1).max(limits.senderMaxCharacters),
          })
          .optional(),
        activeHours: z
          .string()
          .regex(/^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$/u, 'must read 08:00-20:00')
          .optional(),
      })
      .optional(),
    retention: RetentionRule.optional(),
  })
  .meta({ id: 'TenantSettings' });
export type TenantSettings = z.infer<typeof TenantSettings>;

/**
 * What PATCH /api/tenant may change: what the operator decides (plan, suspension, limits) is not the owner's. JSON
 * merge patch (RFC 7396).
 */
export const TenantPatch = z
  .strictObject({
    name: TenantSettings.shape.name.unwrap().nullable().optional(),
    timezone: TenantSettings.shape.timezone.unwrap().nullable().optional(),
    model: TenantSettings.shape.model.unwrap().nullable().optional(),
    agents: TenantSettings.shape.agents.unwrap().nullable().optional(),
    channels: TenantSettings.shape.channels.unwrap().nullable().optional(),
    handoff: TenantSettings.shape.handoff.unwrap().nullable().optional(),
    onFailure: TenantSettings.shape.onFailure.unwrap().nullable().optional(),
    heartbeat: TenantSettings.shape.heartbeat.unwrap().nullable().optional(),
    retention: RetentionPatch.nullable().optional(),
  })
  .meta({ id: 'TenantPatch' });
export type TenantPatch = z.infer<typeof TenantPatch>;
