import { z } from 'zod';
import { ErasureBody, ErasureId, ErasureReport } from '../channels/erasure.ts';
import { TenantId } from '../tenants/tenant.ts';
import { defineRoute } from './route.ts';

const description =
  'Removes conversations with their history, notes, uploads that no other conversation has, deliveries, webhook events, handoffs, index and streams; turns that wait or run are cancelled first. Goes on by itself until nothing is left, after a crash, too, and may be asked for again. `lookAt` of the report names what was left because it only mentions the contact, or may.';
const begun = { 202: { description: 'It is on disk and has begun; its report so far.', json: ErasureReport } };
const found = { 200: { description: 'The report, without the contact.', json: ErasureReport } };

export const eraseContact = defineRoute({
  id: 'eraseContact',
  method: 'post',
  path: '/api/erasures',
  tag: 'memory',
  summary: 'Erase everything of one contact',
  description,
  auth: 'key',
  scopes: ['admin'],
  body: { kind: 'json', schema: ErasureBody },
  answers: begun,
  errors: ['not_found', 'overloaded'],
});

export const getErasure = defineRoute({
  id: 'getErasure',
  method: 'get',
  path: '/api/erasures/{id}',
  tag: 'memory',
  summary: 'How far an erasure is, and what it has removed',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: z.object({ id: ErasureId }),
  answers: found,
  errors: ['not_found'],
});

export const eraseTenantContact = defineRoute({
  id: 'eraseTenantContact',
  method: 'post',
  path: '/ops/api/tenants/{tenant}/erasures',
  tag: 'operations',
  summary: 'Erase everything of one contact of a tenant',
  description,
  auth: 'operator',
  scopes: [],
  params: z.object({ tenant: TenantId }),
  body: { kind: 'json', schema: ErasureBody },
  answers: begun,
  errors: ['not_found', 'overloaded'],
});

export const getTenantErasure = defineRoute({
  id: 'getTenantErasure',
  method: 'get',
  path: '/ops/api/tenants/{tenant}/erasures/{id}',
  tag: 'operations',
  summary: 'How far an erasure is, and what it has removed',
  auth: 'operator',
  scopes: [],
  params: z.object({ tenant: TenantId, id: ErasureId }),
  answers: found,
  errors: ['not_found'],
});
