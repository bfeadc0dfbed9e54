import { z } from 'zod';
import { CreateKeyBody, CreatedKey, KeyView } from '../../tenants/key.ts';
import { defineRoute } from '../route.ts';

const params = z.object({ id: z.string().min(1).max(64) });

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
  method: 'delete',
  path: '/api/keys/{id}',
  tag: 'keys',
  summary: 'Revoke a key',
  description: 'Every gateway refuses it within one second.',
  auth: 'key',
  scopes: ['admin'],
  params,
  answers: { 204: { description: 'It is revoked.' } },
  errors: ['not_found'],
});

export const rotateKey = defineRoute({
  id: 'rotateKey',
  method: 'post',
  path: '/api/keys/{id}/rotate',
  tag: 'keys',
  summary: 'Replace a key',
  description: 'A new key with the same label, scopes and expiry; the old one is revoked.',
  auth: 'key',
  scopes: ['admin'],
  params,
  answers: { 201: { description: 'The new key; it is shown this once.', json: CreatedKey } },
  errors: ['not_found', 'conflict'],
});
