import { z } from 'zod';
import { AgentName, TenantId } from '../tenants/tenant.ts';
import { Finding } from './finding.ts';
import { MINUTE_MS } from '../values/values.ts';

/** Why a turn waits (docs/metrics.md, "Why turns wait"). */
export const waitReasons = ['own_session', 'tenant_share', 'debounce', 'no_free_slot', 'no_worker', 'paused', 'staff'] as const;
export const WaitReason = z.enum(waitReasons);
export type WaitReason = z.infer<typeof WaitReason>;

const whole = z.int().nonnegative();

/**
 * Why one turn waits, in a sentence, and what would start it; then what the sentences say in numbers, so that a page
 * can say it in another language.
 */
export const WaitsFor = z.object({
  reason: WaitReason,
  why: z.string(),
  startsWhen: z.string(),
  /** The turn that stands before it in its conversation. */
  behind: z.string().nullable(),
  isBehindRunning: z.boolean().optional().meta({ description: 'Of `own_session`: whether that turn runs.' }),
  dueSeconds: z.number().nonnegative().optional().meta({ description: 'Of `debounce` and `paused`: when its time has come.' }),
  ahead: whole.optional().meta({ description: 'Of `tenant_share`: conversations of the tenant that stand before its own.' }),
  placesInUse: whole.optional().meta({ description: 'Of `tenant_share`: places that conversations of the tenant have.' }),
  places: whole.optional().meta({ description: 'Of `tenant_share`: places of the tenant.' }),
  workers: whole.optional().meta({ description: 'Of `no_free_slot` and `no_worker`, for operators: workers that take turns.' }),
  slots: whole.optional().meta({ description: 'Of `no_free_slot` and `no_worker`, for operators: turns that these run at once.' }),
});
export type WaitsFor = z.infer<typeof WaitsFor>;

/** Turns of one conversation that wait for the same reason; `turnId`: the first of them. */
export const WaitingEntry = WaitsFor.extend({
  turnId: z.string(),
  tenantId: TenantId,
  contact_id: z.string(),
  agent: AgentName,
  turns: z.int().positive(),
  since: z.iso.datetime(),
  waitedSeconds: z.number().nonnegative(),
}).meta({ id: 'WaitingTurns' });
export type WaitingEntry = z.infer<typeof WaitingEntry>;

const WaitingSum = z.object({
  reason: WaitReason,
  turns: z.int().nonnegative(),
  /** Null: none waits. */
  oldestSeconds: z.number().nonnegative().nullable(),
});

/** How much of one tenant has waited: points of this length, up to the one that is under way. */
export const TENANT_TREND = { points: 60, pointMs: MINUTE_MS } as const;

/** What waits of one tenant. */
export const WaitingTenant = z
  .object({
    tenantId: TenantId,
    turns: whole,
    oldestSeconds: z.number().nonnegative(),
    running: whole.meta({ description: 'Its conversations that run.' }),
    places: whole.meta({ description: 'Its share: how many of its conversations run at once at most; 0 when no worker has said so.' }),
    reasons: z.array(WaitingSum).meta({ description: 'For what they wait, no reason for which none does.' }),
    recent: z
      .array(whole)
      .length(TENANT_TREND.points)
      .meta({
        description:
          'How many of its turns waited, whatever for, in each of the last 60 minutes: the highest of samples every ten seconds, the minute under way last. ' +
          '0 also where none was sampled, and where 100 other tenants had more.',
      }),
  })
  .meta({ id: 'WaitingTenant' });
export type WaitingTenant = z.infer<typeof WaitingTenant>;

/** GET /ops/api/waiting. `isWhole`: false when more is under way than one look reads; then at least this waits. */
export const WaitingPage = z
  .object({
    at: z.iso.datetime(),
    isWhole: z.boolean(),
    reasons: z.array(WaitingSum),
    tenants: z.array(WaitingTenant).meta({ description: 'The 100 tenants whose turns wait longest, they first, on each page.' }),
    waiting: z.array(WaitingEntry),
  })
  .meta({ id: 'Waiting' });
export type WaitingPage = z.infer<typeof WaitingPage>;

export const WorkerState = z.enum(['running', 'draining', 'stalled']);

/** GET /ops/api/workers. */
export const WorkerView = z
  .object({
    id: z.string(),
    version: z.string(),
    state: WorkerState,
    isDrained: z.boolean().meta({ description: 'An operator has it take no turns.' }),
    startedAt: z.iso.datetime(),
    /** Turns that it runs at once, at each depth of sub-agents. */
    slots: z.int().nonnegative(),
    running: z.int().nonnegative(),
    /** Ids of the turns that it runs. */
    turns: z.array(z.string()),
    /** Longest time that its event loop stood still in its last ten seconds. */
    stallMs: z.number().nonnegative(),
    /** Since its last report. */
    silentMs: z.number().nonnegative(),
  })
  .meta({ id: 'Worker' });
export type WorkerView = z.infer<typeof WorkerView>;

/** The longest wait that is not of a conversation's own making. */
const LongestWait = z.object({ tenantId: TenantId, reason: WaitReason, waitedSeconds: z.number().nonnegative() });

/** GET /ops/api/overview: `summary` is one sentence, in English. */
export const Overview = z
  .object({
    at: z.iso.datetime(),
    summary: z.string(),
    longest: LongestWait.nullable().meta({ description: 'What `summary` is about; null when nothing waits but for its own conversation.' }),
    reasons: z.array(WaitingSum),
    running: z.int().nonnegative(),
    slots: z.int().nonnegative(),
    workers: z.record(WorkerState, z.int().nonnegative()),
  })
  .meta({ id: 'Overview' });
export type Overview = z.infer<typeof Overview>;

/** What a provider of models did in the last 15 minutes. */
export const ProviderHealth = z
  .object({
    provider: z.string(),
    calls: z.int().nonnegative().meta({ description: 'Answered.' }),
    failures: z.int().nonnegative().meta({ description: 'Attempts that failed, those that were repeated included.' }),
    p50Ms: z.number().nonnegative().nullable(),
    p95Ms: z.number().nonnegative().nullable(),
  })
  .meta({ id: 'ProviderHealth' });
export type ProviderHealth = z.infer<typeof ProviderHealth>;

/** GET /ops/api/health. */
export const Health = z
  .object({
    status: z.enum(['ready', 'unready', 'shutting_down']),
    checks: z.record(z.string(), z.object({ ok: z.boolean(), ms: z.number().nonnegative() })),
    redis: z.object({ usedBytes: z.number().nonnegative(), maxBytes: z.number().nonnegative() }).nullable(),
    disk: z.object({ freeBytes: z.number().nonnegative(), sizeBytes: z.number().nonnegative() }).nullable(),
    providers: z.array(ProviderHealth),
    findings: z.array(Finding).meta({ description: 'What `concierge doctor` finds of the whole deployment, in its words.' }),
  })
  .meta({ id: 'Health' });
export type Health = z.infer<typeof Health>;
