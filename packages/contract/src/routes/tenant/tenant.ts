import { z } from 'zod';
import { TenantId, TenantPatch, TenantSettings } from '../../tenants/tenant.ts';
import { defineRoute } from '../route.ts';
import { AgentView } from '../../tenants/agent.ts';
import { ReindexReport, Skill } from '../../tenants/skill.ts';
import { CreateKeyBody, CreatedKey, KeyView } from '../../tenants/key.ts';
import { BudgetsView } from '../../tenants/budget.ts';
import { UsageDay, UsageRow } from '../../turns/usage.ts';

/** tenant.json, and what is wrong with it when the last good one is in force instead. */
export const TenantView = TenantSettings.extend({
  id: TenantId,
  problem: z.string().nullable(),
  warnings: z.array(z.string()).optional().meta({
    description: 'Of a change: what is stored and in force, and will not work well, such as a model too small for the tools of an agent.',
  }),
  demoModel: z.literal(true).optional().meta({ description: 'No model provider is set up: the built-in demo model answers.' }),
}).meta({ id: 'Tenant' });
export type TenantView = z.infer<typeof TenantView>;

export const getTenant = defineRoute({
  id: 'getTenant',
  method: 'get',
  path: '/api/tenant',
  tag: 'tenant',
  summary: 'Settings of the tenant',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'The settings in force.', json: TenantView } },
  errors: [],
});

export const updateTenant = defineRoute({
  id: 'updateTenant',
  audit: 'settings.update',
  method: 'patch',
  path: '/api/tenant',
  tag: 'tenant',
  summary: 'Change settings of the tenant',
  description: 'JSON merge patch (RFC 7396): null removes a setting.',
  auth: 'key',
  scopes: ['admin'],
  body: { kind: 'json', schema: TenantPatch, types: ['application/json', 'application/merge-patch+json'] },
  answers: { 200: { description: 'The settings as they now are.', json: TenantView } },
  errors: [],
});

export const listAgents = defineRoute({
  id: 'listAgents',
  method: 'get',
  path: '/api/agents',
  tag: 'agents',
  summary: 'All agents: the built-in ones, and those of agents/<name>.md',
  description: 'A file that cannot be used is listed with its `problem`.',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'Agents, the built-in ones first, then by name.', json: z.array(AgentView) } },
  errors: [],
});

/** GET /api/skills (service interface). */
export const listSkills = defineRoute({
  id: 'listSkills',
  method: 'get',
  path: '/api/skills',
  tag: 'skills',
  summary: 'All skills, from the front matter of each SKILL.md',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'Skills by name.', json: z.array(Skill) } },
  errors: [],
});

/** POST /api/skills/reindex (service interface). */
export const reindexSkills = defineRoute({
  id: 'reindexSkills',
  method: 'post',
  path: '/api/skills/reindex',
  tag: 'skills',
  summary: 'Rebuild the skills index from the files',
  auth: 'key',
  scopes: ['admin'],
  answers: { 200: { description: 'How many were indexed, and which could not be read.', json: ReindexReport } },
  errors: [],
});

const keyParams = z.object({ id: z.string().min(1).max(64) });

export const listKeys = defineRoute({
  id: 'listKeys',
  method: 'get',
  path: '/api/keys',
  tag: 'keys',
  summary: 'Keys of the tenant, without the keys themselves',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'Keys, oldest first.', json: z.array(KeyView) } },
  errors: [],
});

export const createKey = defineRoute({
  id: 'createKey',
  audit: 'key.create',
  method: 'post',
  path: '/api/keys',
  tag: 'keys',
  summary: 'Create a key',
  auth: 'key',
  scopes: ['admin'],
  body: { kind: 'json', schema: CreateKeyBody },
  answers: { 201: { description: 'The key; it is shown this once.', json: CreatedKey } },
  errors: [],
});

export const revokeKey = defineRoute({
  id: 'revokeKey',
  audit: 'key.revoke',
  method: 'delete',
  path: '/api/keys/{id}',
  tag: 'keys',
  summary: 'Revoke a key',
  description: 'Every gateway refuses it within one second.',
  auth: 'key',
  scopes: ['admin'],
  params: keyParams,
  answers: { 204: { description: 'It is revoked.' } },
  errors: ['not_found'],
});

export const rotateKey = defineRoute({
  id: 'rotateKey',
  audit: 'key.rotate',
  method: 'post',
  path: '/api/keys/{id}/rotate',
  tag: 'keys',
  summary: 'Replace a key',
  description: 'A new key with the same label, scopes and expiry; the old one is revoked.',
  auth: 'key',
  scopes: ['admin'],
  params: keyParams,
  answers: { 201: { description: 'The new key; it is shown this once.', json: CreatedKey } },
  errors: ['not_found', 'conflict'],
});

/** What a tenant used between two days, both included; `total` sums the rows, and its cost those with a known price. */
export const UsageReport = z
  .object({
    from: UsageDay,
    to: UsageDay,
    items: z.array(UsageRow),
    total: UsageRow.pick({ turns: true, calls: true, inputTokens: true, cachedInputTokens: true, outputTokens: true, costUsd: true }),
    budgets: BudgetsView.optional().meta({ description: 'What is spent of its budgets, now; not of a tenant that has none.' }),
  })
  .meta({ id: 'UsageReport' });
export type UsageReport = z.infer<typeof UsageReport>;

export const getUsage = defineRoute({
  id: 'getUsage',
  method: 'get',
  path: '/api/usage',
  tag: 'usage',
  summary: 'Tokens, model calls and cost by day, agent, channel and model',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({
    from: UsageDay.optional().meta({ description: 'First day (UTC); 29 days before `to` when omitted.' }),
    to: UsageDay.optional().meta({ description: 'Last day (UTC), included; today when omitted.' }),
  }),
  answers: { 200: { description: 'The usage.', json: UsageReport } },
  errors: [],
});
