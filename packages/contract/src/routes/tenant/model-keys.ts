import { z } from 'zod';
import { ModelKeyBody, ModelKeyView, ModelProviderName } from '../../tenants/model-key.ts';
import { TenantId } from '../../tenants/tenant.ts';
import { defineRoute } from '../route.ts';

const params = z.object({ provider: ModelProviderName });
const operatorParams = z.object({ tenant: TenantId, provider: ModelProviderName });
const owner = { tag: 'tenant', auth: 'key', scopes: ['admin'] } as const;
const operator = { tag: 'operations', auth: 'operator', scopes: [] } as const;
const keys = { 200: { description: 'Keys by provider, without the keys themselves.', json: z.array(ModelKeyView) } };
const stored = { 200: { description: 'It is stored, and used from the next turn on.', json: ModelKeyView } };
const gone = { 204: { description: 'It is gone; the operator’s key is used again.' } };
const body = { kind: 'json', schema: ModelKeyBody } as const;
const description =
  'Used for every call of this provider’s models for the tenant: replies, summaries, fallbacks, embeddings. The provider bills its owner; when it refuses the key, the operator’s is not used in its place. Encrypted at rest, never shown again.';

export const listModelKeys = defineRoute({
  ...owner,
  scopes: ['admin', 'read'],
  id: 'listModelKeys',
  method: 'get',
  path: '/api/model-keys',
  summary: 'Own keys for model providers',
  answers: keys,
  errors: [],
});

export const putModelKey = defineRoute({
  ...owner,
  id: 'putModelKey',
  audit: 'model-key.set',
  method: 'put',
  path: '/api/model-keys/{provider}',
  summary: 'Use an own key for a model provider',
  description,
  params,
  body,
  answers: stored,
  errors: [],
});

export const deleteModelKey = defineRoute({
  ...owner,
  id: 'deleteModelKey',
  audit: 'model-key.remove',
  method: 'delete',
  path: '/api/model-keys/{provider}',
  summary: 'Remove an own key',
  params,
  answers: gone,
  errors: ['not_found'],
});

export const listOperatedModelKeys = defineRoute({
  ...operator,
  id: 'listOperatedModelKeys',
  method: 'get',
  path: '/ops/api/tenants/{tenant}/model-keys',
  summary: 'A tenant’s own keys for model providers',
  params: operatorParams.pick({ tenant: true }),
  answers: keys,
  errors: ['not_found'],
});

export const putOperatedModelKey = defineRoute({
  ...operator,
  id: 'putOperatedModelKey',
  method: 'put',
  path: '/ops/api/tenants/{tenant}/model-keys/{provider}',
  summary: 'Use a tenant’s own key for a model provider',
  description,
  params: operatorParams,
  body,
  answers: stored,
  errors: ['not_found'],
});

export const deleteOperatedModelKey = defineRoute({
  ...operator,
  id: 'deleteOperatedModelKey',
  method: 'delete',
  path: '/ops/api/tenants/{tenant}/model-keys/{provider}',
  summary: 'Remove a tenant’s own key',
  params: operatorParams,
  answers: gone,
  errors: ['not_found'],
});
