import { z } from 'zod';
import { limits } from '../../limits.ts';
import { CreateKeyBody, CreatedKey, KeyView } from '../../tenants/key.ts';
import {
  CreatedTenant,
  ImportedTenant,
  NewTenantBody,
  OperatedTenant,
  OperatedTenantDetails,
  OperatedTenantPatch,
  RemovedTenant,
} from '../../tenants/operated-tenant.ts';
import { Reindexed, ReindexBody } from '../../tenants/reindex.ts';
import { TenantId } from '../../tenants/tenant.ts';
import { AuditEntry } from '../../values/audit.ts';
import { cursorParameter, defineRoute, limitParameter, pageHeaders } from '../route.ts';

const operator = { tag: 'operations', auth: 'operator', scopes: [] } as const;
const params = z.object({ tenant: TenantId });
const keyParams = z.object({ tenant: TenantId, id: z.string().min(1).max(64) });
const archiveType = 'application/gzip';

export const listTenants = defineRoute({
  ...operator,
  id: 'listTenants',
  method: 'get',
  path: '/ops/api/tenants',
  summary: 'Tenants, by id',
  query: z.strictObject({ limit: limitParameter, cursor: cursorParameter }),
  answers: { 200: { description: 'Tenants.', json: z.array(OperatedTenant), headers: pageHeaders } },
  errors: [],
});

export const createTenant = defineRoute({
  ...operator,
  id: 'createTenant',
  method: 'post',
  path: '/ops/api/tenants',
  summary: 'Create a tenant, with starter files, an admin and a cs key',
  body: { kind: 'json', schema: NewTenantBody },
  answers: { 201: { description: 'Its keys; they are shown this once.', json: CreatedTenant } },
  errors: ['conflict'],
});

export const getOperatedTenant = defineRoute({
  ...operator,
  id: 'getOperatedTenant',
  method: 'get',
  path: '/ops/api/tenants/{tenant}',
  summary: 'One tenant',
  params,
  answers: { 200: { description: 'The tenant.', json: OperatedTenantDetails } },
  errors: ['not_found'],
});

export const updateOperatedTenant = defineRoute({
  ...operator,
  id: 'updateOperatedTenant',
  method: 'patch',
  path: '/ops/api/tenants/{tenant}',
  summary: 'Change plan, limits or name',
  description: 'JSON merge patch: what is null goes. In force with the next request.',
  params,
  body: { kind: 'json', schema: OperatedTenantPatch, types: ['application/json', 'application/merge-patch+json'] },
  answers: { 200: { description: 'The tenant.', json: OperatedTenantDetails } },
  errors: ['not_found', 'conflict'],
});

export const suspendTenant = defineRoute({
  ...operator,
  id: 'suspendTenant',
  method: 'post',
  path: '/ops/api/tenants/{tenant}/suspend',
  summary: 'Refuse its keys; what is accepted waits',
  description:
    'Keys and the widget get 403 `tenant_suspended`. Turns that run go on to their end; others wait. Messages of channels are accepted and wait. Schedules skip their runs. Nothing is sent.',
  params,
  answers: { 200: { description: 'The tenant.', json: OperatedTenant } },
  errors: ['not_found', 'conflict'],
});

export const resumeTenant = defineRoute({
  ...operator,
  id: 'resumeTenant',
  method: 'post',
  path: '/ops/api/tenants/{tenant}/resume',
  summary: 'End a suspension',
  params,
  answers: { 200: { description: 'The tenant.', json: OperatedTenant } },
  errors: ['not_found', 'conflict'],
});

export const deleteTenant = defineRoute({
  ...operator,
  id: 'deleteTenant',
  method: 'delete',
  path: '/ops/api/tenants/{tenant}',
  summary: 'Remove a tenant and everything of it',
  description: 'Its turns are stopped first, for at most 30 seconds.',
  params,
  answers: { 200: { description: 'It is gone; what was not done as it should be.', json: RemovedTenant } },
  errors: ['not_found', 'conflict', 'overloaded'],
});

export const listTenantKeys = defineRoute({
  ...operator,
  id: 'listTenantKeys',
  method: 'get',
  path: '/ops/api/tenants/{tenant}/keys',
  summary: 'Keys of a tenant, without the keys themselves',
  params,
  answers: { 200: { description: 'Keys, oldest first.', json: z.array(KeyView) } },
  errors: ['not_found'],
});

export const createTenantKey = defineRoute({
  ...operator,
  id: 'createTenantKey',
  method: 'post',
  path: '/ops/api/tenants/{tenant}/keys',
  summary: 'Create a key of a tenant',
  params,
  body: { kind: 'json', schema: CreateKeyBody },
  answers: { 201: { description: 'The key; it is shown this once.', json: CreatedKey } },
  errors: ['not_found'],
});

export const revokeTenantKey = defineRoute({
  ...operator,
  id: 'revokeTenantKey',
  method: 'delete',
  path: '/ops/api/tenants/{tenant}/keys/{id}',
  summary: 'Revoke a key of a tenant',
  params: keyParams,
  answers: { 204: { description: 'It is revoked.' } },
  errors: ['not_found'],
});

export const rotateTenantKey = defineRoute({
  ...operator,
  id: 'rotateTenantKey',
  method: 'post',
  path: '/ops/api/tenants/{tenant}/keys/{id}/rotate',
  summary: 'Replace a key of a tenant',
  params: keyParams,
  answers: { 201: { description: 'The new key; it is shown this once.', json: CreatedKey } },
  errors: ['not_found', 'conflict'],
});

export const exportTenant = defineRoute({
  ...operator,
  id: 'exportTenant',
  method: 'get',
  path: '/ops/api/tenants/{tenant}/export',
  summary: 'Everything of a tenant, as a .tar.gz',
  description: 'Suspend it first when all files are to be of the same moment.',
  params,
  answers: { 200: { description: 'The archive.', text: archiveType, headers: { 'Content-Disposition': 'A name for the file.' } } },
  errors: ['not_found', 'overloaded'],
});

export const importTenant = defineRoute({
  ...operator,
  id: 'importTenant',
  method: 'post',
  path: '/ops/api/import',
  summary: 'Make a tenant from such an archive',
  description:
    'Whole or not at all. The body has to arrive within 30 seconds, as that of any request: larger archives are imported by `concierge tenant import`.',
  query: z.strictObject({
    as: TenantId.optional().meta({
      description: 'Another id than the archive’s. The tenant then gets new keys, and what is bound to the old id stays behind.',
    }),
  }),
  body: { kind: 'stream', types: [archiveType, 'application/x-gzip', 'application/octet-stream'], maxBytes: limits.archiveMaxBytes },
  answers: { 201: { description: 'The tenant.', json: ImportedTenant } },
  errors: ['conflict', 'overloaded'],
});

export const reindexTenants = defineRoute({
  ...operator,
  id: 'reindexTenants',
  method: 'post',
  path: '/ops/api/reindex',
  summary: 'Compare the index with the files, and put right what differs',
  description:
    'A dry run unless `dryRun` is false: it says what differs and changes nothing. Tenant by tenant, in the order of their ids: one call takes some seconds, or as long as one tenant takes. Go on with `nextCursor`, and stop by not asking again. Everything goes on meanwhile, and a call that is repeated finds nothing.',
  body: { kind: 'json', schema: ReindexBody },
  answers: { 200: { description: 'What differed.', json: Reindexed } },
  errors: ['not_found', 'overloaded'],
});

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
