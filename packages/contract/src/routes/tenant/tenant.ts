import { z } from 'zod';
import { TenantId, TenantPatch, TenantSettings } from '../../tenants/tenant.ts';
import { defineRoute } from '../route.ts';

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
