import type { Asked, TenantOperations } from '@concierge/core/tenant-operations';
import type { Handlers } from '../http/call.ts';
import type { ModelNames } from '../openai/model-names.ts';

interface ModelKeyOptions {
  readonly operations: TenantOperations;
  readonly modelNames: ModelNames;
}

type ModelKeyHandlers = Pick<
  Handlers,
  'listModelKeys' | 'putModelKey' | 'deleteModelKey' | 'listOperatedModelKeys' | 'putOperatedModelKey' | 'deleteOperatedModelKey'
>;

/** A tenant's own keys for model providers, as its owner and as operators manage them. */
export function modelKeyHandlers({ operations, modelNames }: ModelKeyOptions): ModelKeyHandlers {
  const asked = ({ requestId }: { readonly requestId: string }): Asked => ({ requestId });
  return {
    listModelKeys: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.modelKeys.list() }),
    putModelKey: async ({ caller, params: { provider }, body }) => {
      await modelNames.refuseUnknownProvider(provider);
      return { kind: 'answer', status: 200, json: await caller.scope.modelKeys.put(provider, body) };
    },
    deleteModelKey: async ({ caller, params }) => {
      await caller.scope.modelKeys.remove(params.provider);
      return { kind: 'answer', status: 204 };
    },
    listOperatedModelKeys: async ({ params }) => ({ kind: 'answer', status: 200, json: await operations.listModelKeys(params.tenant) }),
    putOperatedModelKey: async (call) => {
      const { tenant: tenantId, provider } = call.params;
      await modelNames.refuseUnknownProvider(provider);
      return { kind: 'answer', status: 200, json: await operations.putModelKey({ tenantId, provider }, call.body, asked(call)) };
    },
    deleteOperatedModelKey: async (call) => {
      const { tenant: tenantId, provider } = call.params;
      await operations.removeModelKey({ tenantId, provider }, asked(call));
      return { kind: 'answer', status: 204 };
    },
  };
}
