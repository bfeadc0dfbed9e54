import type { TenantSettings, TenantView } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { Handlers } from '../http/call.ts';

export function tenantHandlers(): Pick<Handlers, 'getTenant' | 'updateTenant'> {
  return {
    getTenant: async ({ caller }) => ({ kind: 'answer', status: 200, json: view(caller.scope, await caller.scope.settings()) }),
    updateTenant: async ({ caller, body }) => ({
      kind: 'answer',
      status: 200,
      json: view(caller.scope, await caller.scope.updateSettings(body)),
    }),
  };
}

function view(scope: TenantScope, settings: TenantSettings): TenantView {
  return { ...settings, id: scope.accountId, problem: scope.settingsProblem() };
}
