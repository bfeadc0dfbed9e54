import { z } from 'zod';
import { limitedRecord } from '../values/values.ts';
import { KeyScope } from './key.ts';
import { AgentName, TenantId, TenantPlan, TenantSettings } from './tenant.ts';

/** GET /api/whoami: what a client that has nothing but its key has to know first. */
export const WhoAmI = z
  .object({
    tenantId: TenantId,
    name: z.string().nullable(),
    keyId: z.string(),
    scopes: z.array(KeyScope),
    plan: TenantPlan,
    limits: TenantSettings.shape.limits.unwrap().meta({ description: 'Those that were set for this tenant; the others are the plan’s.' }),
    timezone: z.string().meta({ description: 'In which the console shows times; UTC where none is set.' }),
    demoModel: z.boolean().meta({ description: 'No model provider is set up: the built-in demo model answers.' }),
    publicUrl: z.string().nullable().meta({ description: 'Where providers reach this service; null: PUBLIC_URL is not set.' }),
    sendsEmail: z.boolean().nullable().meta({
      description: 'Whether e-mails about unanswered handoffs are sent: SMTP_URL is set for cron. null: no cron runs that could say so.',
    }),
  })
  .meta({ id: 'WhoAmI' });
export type WhoAmI = z.infer<typeof WhoAmI>;

/** POST /api/policy/check */
export const PolicyCheckBody = z
  .strictObject({
    agent: AgentName,
    tool: z.string().min(1).max(100).meta({ description: 'A tool’s name, as in `write` or `mcp__shop__find_order`.' }),
    arguments: limitedRecord(z.string().max(100), z.unknown(), 100)
      .default({})
      .meta({ description: 'What it would be called with: a rule may depend on the path.' }),
  })
  .meta({ id: 'PolicyCheckBody' });

/**
 * What decides about a call, in the order in which it is asked: whether there is such a tool, the access of the agent,
 * the list of its file, the list of tenant.json, the servers that are attached to it, the path that it names.
 */
export const PolicyRule = z.enum(['none', 'unknown_tool', 'access', 'agent_file', 'settings', 'mcp_server', 'path']);
export type PolicyRule = z.infer<typeof PolicyRule>;

export const PolicyVerdict = z
  .object({
    allowed: z.boolean(),
    rule: PolicyRule.meta({ description: 'The rule that refuses it; `none` where it is allowed.' }),
    reason: z.string().meta({ description: 'The rule in one sentence, with where to change it.' }),
  })
  .meta({ id: 'PolicyVerdict' });
export type PolicyVerdict = z.infer<typeof PolicyVerdict>;
