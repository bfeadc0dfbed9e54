import { z } from 'zod';
import { RetentionPatch } from './retention.ts';
import { TenantId, TenantPlan, TenantSettings } from './tenant.ts';

/** A tenant as operators see it. */
export const OperatedTenant = z
  .object({
    tenantId: TenantId,
    plan: TenantPlan,
    name: z.string().nullable(),
    suspended: z.boolean(),
    /** What is wrong with tenant.json; null when nothing is. */
    problem: z.string().nullable(),
  })
  .meta({ id: 'OperatedTenant' });
export type OperatedTenant = z.infer<typeof OperatedTenant>;

export const OperatedTenantDetails = OperatedTenant.extend({
  settings: TenantSettings,
  activeKeys: z.int().nonnegative(),
  skills: z.int().nonnegative(),
  /** Accepted and not yet answered. */
  waitingTurns: z.int().nonnegative(),
}).meta({ id: 'OperatedTenantDetails' });
export type OperatedTenantDetails = z.infer<typeof OperatedTenantDetails>;

const ownLimits = TenantSettings.shape.limits.unwrap();
const tenantName = TenantSettings.shape.name.unwrap();

const own = ownLimits.shape;
const limitsPatch = {
  requestsPerHour: own.requestsPerHour.nullable(),
  memoryBytes: own.memoryBytes.nullable(),
  workspaceBytes: own.workspaceBytes.nullable(),
  streamCharactersPerHour: own.streamCharactersPerHour.nullable(),
  tokensPerDay: own.tokensPerDay.nullable(),
  tokensPerMonth: own.tokensPerMonth.nullable(),
  usdPerDay: own.usdPerDay.nullable(),
  usdPerMonth: own.usdPerMonth.nullable(),
  budgetTimezone: own.budgetTimezone.nullable(),
  scheduleBudgetShare: own.scheduleBudgetShare.nullable(),
} as const satisfies Record<keyof typeof own, z.ZodType>;

export const NewTenantBody = z
  .strictObject({ id: TenantId, plan: TenantPlan.default('standard'), name: tenantName.optional(), limits: ownLimits.optional() })
  .meta({ id: 'NewTenantBody' });
export type NewTenantBody = z.infer<typeof NewTenantBody>;

/** What the operator decides about a tenant. JSON merge patch (RFC 7396): null removes. */
export const OperatedTenantPatch = z
  .strictObject({
    plan: TenantPlan.optional(),
    name: tenantName.nullable().optional(),
    limits: z.strictObject(limitsPatch).nullable().optional(),
    retention: RetentionPatch.nullable().optional(),
  })
  .meta({ id: 'OperatedTenantPatch' });
export type OperatedTenantPatch = z.infer<typeof OperatedTenantPatch>;

const FirstKeys = z.object({ admin: z.string(), cs: z.string() });

export const CreatedTenant = z.object({ tenantId: TenantId, keys: FirstKeys }).meta({ id: 'CreatedTenant' });
export type CreatedTenant = z.infer<typeof CreatedTenant>;

export const RemovedTenant = z
  .object({ tenantId: TenantId, deleted: z.literal(true), notes: z.array(z.string()) })
  .meta({ id: 'RemovedTenant' });
export type RemovedTenant = z.infer<typeof RemovedTenant>;

export const ImportedTenant = z
  .object({
    tenantId: TenantId,
    files: z.int().nonnegative(),
    /** New ones, where the archive brought none along. */
    keys: FirstKeys.optional(),
    /** What does not work after it as it did before, or works twice. */
    notes: z.array(z.string()),
  })
  .meta({ id: 'ImportedTenant' });
export type ImportedTenant = z.infer<typeof ImportedTenant>;
