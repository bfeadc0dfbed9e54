import { z } from 'zod';
import { TenantId } from '../../tenants/tenant.ts';
import { AuditEntry } from '../../values/audit.ts';
import { cursorParameter, defineRoute, limitParameter, pageHeaders } from '../route.ts';

const entries = { 200: { description: 'Entries, newest first.', json: z.array(AuditEntry), headers: pageHeaders } };

export const listAudit = defineRoute({
  id: 'listAudit',
  method: 'get',
  path: '/api/audit',
  tag: 'tenant',
  summary: 'Who changed what, and when',
  description:
    'Changes of keys, settings, files, schedules, channels, MCP servers, event endpoints and the widget, deletions, and what operators did. What agents do in turns is in the records of the turns. Names and ids only. The oldest entries are dropped at 16 MiB.',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({ limit: limitParameter, cursor: cursorParameter }),
  answers: entries,
  errors: [],
});

export const listOperatorAudit = defineRoute({
  id: 'listOperatorAudit',
  method: 'get',
  path: '/ops/api/audit',
  tag: 'operations',
  summary: 'What operators did, or what was done in one tenant',
  auth: 'operator',
  scopes: [],
  query: z.strictObject({
    tenant: TenantId.optional().meta({ description: 'The log of this tenant, as its owner sees it.' }),
    limit: limitParameter,
    cursor: cursorParameter,
  }),
  answers: entries,
  errors: ['not_found'],
});
