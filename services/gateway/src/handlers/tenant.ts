import type { TenantSettings, TenantView } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { Handlers } from '../http/call.ts';

export interface TenantHandlersOptions {
  /** Do workers answer with the built-in demo model? */
  readonly isDemo: () => Promise<boolean>;
}

export function tenantHandlers({ isDemo }: TenantHandlersOptions): Pick<Handlers, 'getTenant' | 'updateTenant'> {
  return {
    getTenant: async ({ caller }) => {
      const [settings, demoModel] = await Promise.all([caller.scope.settings(), isDemo()]);
      return { kind: 'answer', status: 200, json: { ...view(caller.scope, settings), ...(demoModel && { demoModel }) } };
    },
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
