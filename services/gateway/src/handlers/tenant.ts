import { builtInAgents, type TenantPatch, type TenantSettings, type TenantView } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { Handlers } from '../http/call.ts';
import type { ModelNames, NamedModel } from '../openai/model-names.ts';

export interface TenantHandlersOptions {
  readonly modelNames: ModelNames;
  /** Do workers answer with the built-in demo model? */
  readonly isDemo: () => Promise<boolean>;
}

export function tenantHandlers({ modelNames, isDemo }: TenantHandlersOptions): Pick<Handlers, 'getTenant' | 'updateTenant'> {
  return {
    getTenant: async ({ caller }) => {
      const [settings, demoModel] = await Promise.all([caller.scope.settings(), isDemo()]);
      return { kind: 'answer', status: 200, json: { ...view(caller.scope, settings), ...(demoModel && { demoModel }) } };
    },
    updateTenant: async ({ caller, body }) => {
      await modelNames.refuseUnknown(modelsIn(body));
      const settings = await caller.scope.updateSettings(body);
      const warnings = await modelNames.smallWindows([...builtInAgents, ...(await caller.scope.agents.scan()).valid], settings);
      return { kind: 'answer', status: 200, json: { ...view(caller.scope, settings), ...(warnings.length > 0 && { warnings }) } };
    },
  };
}

/** The models that a change names, by their fields. */
function modelsIn({ model, agents }: TenantPatch): NamedModel[] {
  const ofAgents = Object.entries(agents ?? {}).map(([name, agent]) => ({ path: `agents.${name}.model`, ref: agent.model }));
  return [{ path: 'model', ref: model ?? undefined }, ...ofAgents].flatMap(({ path, ref }) => (ref === undefined ? [] : [{ path, ref }]));
}

function view(scope: TenantScope, settings: TenantSettings): TenantView {
  return { ...settings, id: scope.tenantId, problem: scope.settingsProblem() };
}
