import {
  builtInAgents,
  type TenantPatch,
  type TenantSettings,
  type TenantView,
  agentRules,
  builtInAgent,
  limits,
  toolsOfAgent,
  type AgentDefinition,
  type AgentView,
  type McpServerTest,
  totalUsage,
  usageDays,
} from '@concierge/contract';
import type { SettingsPatch, TenantScope, InvalidAgent } from '@concierge/tenant';
import { hasBudget, type Budgets } from '@concierge/turn';
import { McpServerError, type McpServers } from '@concierge/mcp';
import type { Handlers } from '../http/call.ts';
import { goneSignal } from '../http/request-context.ts';
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
      return { kind: 'answer', status: 200, json: { ...toTenantView(caller.scope, settings), ...(demoModel && { demoModel }) } };
    },
    updateTenant: async ({ caller, body }) => {
      await modelNames.refuseUnknown(modelsIn(body));
      const settings = await caller.scope.updateSettings({ ...body, ...(await keepBudgetZone(caller.scope, body)) });
      const warnings = await modelNames.smallWindows([...builtInAgents, ...(await caller.scope.agents.scan()).valid], settings);
      return { kind: 'answer', status: 200, json: { ...toTenantView(caller.scope, settings), ...(warnings.length > 0 && { warnings }) } };
    },
  };
}

/**
 * Budgets keep the zone in which their day has begun: an owner who could move it would begin a new day, with a whole
 * budget, at any hour.
 */
async function keepBudgetZone(scope: TenantScope, { timezone }: TenantPatch): Promise<Pick<SettingsPatch, 'limits'>> {
  const before = await scope.settings();
  if (timezone === undefined || !hasBudget(before) || before.limits?.budgetTimezone !== undefined) return {};
  return { limits: { budgetTimezone: before.timezone ?? 'UTC' } };
}

/** The models that a change names, by their fields. */
function modelsIn({ model, agents }: TenantPatch): NamedModel[] {
  const ofAgents = Object.entries(agents ?? {}).map(([name, agent]) => ({ path: `agents.${name}.model`, ref: agent?.model }));
  return [{ path: 'model', ref: model }, ...ofAgents].flatMap(({ path, ref }) => (ref == null ? [] : [{ path, ref }]));
}

function toTenantView(scope: TenantScope, settings: TenantSettings): TenantView {
  return { ...settings, id: scope.tenantId, problem: scope.settingsProblem() };
}

export function agentHandlers(): Pick<Handlers, 'listAgents'> {
  return {
    listAgents: async ({ caller }) => {
      const [settings, { valid, invalid }] = await Promise.all([caller.scope.settings(), caller.scope.agents.scan()]);
      const own = [...valid.map((agent) => toAgentView(agent, settings)), ...invalid.map((file) => brokenView(file))];
      const json = [...builtInAgents.map((agent) => toAgentView(agent, settings)), ...own.toSorted(byName)];
      return { kind: 'answer', status: 200, json };
    },
  };
}

function toAgentView(agent: AgentDefinition, settings: TenantSettings): AgentView {
  const { name, description, access } = agent;
  const { allow, model = null, maxTurns } = agentRules(agent, settings);
  const builtIn = builtInAgent(name) !== undefined;
  return { name, description, public: access === 'cs', builtIn, tools: toolsOfAgent(access, allow), model, maxTurns, problem: null };
}

function brokenView({ name, path, reason, problems }: InvalidAgent): AgentView {
  const problem = `${path}: ${reason}`;
  return {
    name,
    description: '',
    public: false,
    builtIn: false,
    tools: [],
    model: null,
    maxTurns: limits.maxTurnsDefault,
    problem,
    problems: [...problems],
  };
}

function byName(left: AgentView, right: AgentView): number {
  return left.name < right.name ? -1 : 1;
}

export function skillHandlers(): Pick<Handlers, 'listSkills' | 'reindexSkills'> {
  return {
    listSkills: async ({ caller }) => ({ kind: 'answer', status: 200, json: [...(await caller.scope.skills.list())] }),
    reindexSkills: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.reindexSkills() }),
  };
}

/** A key mints only scopes that it has itself, so the calling key's scopes are passed along. */
export function keyHandlers(): Pick<Handlers, 'listKeys' | 'createKey' | 'revokeKey' | 'rotateKey'> {
  return {
    listKeys: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.keys.list() }),
    createKey: async ({ caller, body }) => ({ kind: 'answer', status: 201, json: await caller.scope.keys.create(body, caller.key.scopes) }),
    revokeKey: async ({ caller, params }) => {
      await caller.scope.keys.revoke(params.id);
      return { kind: 'answer', status: 204 };
    },
    rotateKey: async ({ caller, params }) => ({
      kind: 'answer',
      status: 201,
      json: await caller.scope.keys.rotate(params.id, caller.key.scopes),
    }),
  };
}

type CronHandlers = Pick<
  Handlers,
  | 'listSchedules'
  | 'createSchedule'
  | 'listScheduleTimes'
  | 'getSchedule'
  | 'updateSchedule'
  | 'deleteSchedule'
  | 'runSchedule'
  | 'listScheduleRuns'
>;

/**
 * Schedules are files; the scheduler sees what is changed here. A schedule made with a key has the rights of the owner.
 */
export function cronHandlers(): CronHandlers {
  return {
    listSchedules: async ({ caller: { scope } }) => {
      const { schedules } = await scope.schedules.list();
      return { kind: 'answer', status: 200, json: schedules.map((schedule) => scope.schedules.view(schedule)) };
    },
    createSchedule: async ({ caller: { scope, key }, body }) => {
      const made = await scope.schedules.create(body, { by: { kind: 'key', keyId: key.id }, authority: 'admin' });
      return { kind: 'answer', status: 201, json: scope.schedules.view(made) };
    },
    listScheduleTimes: async ({ caller: { scope }, query }) => ({
      kind: 'answer',
      status: 200,
      json: await scope.schedules.previewTimes(query),
    }),
    getSchedule: async ({ caller: { scope }, params }) => {
      return { kind: 'answer', status: 200, json: scope.schedules.view(await scope.schedules.get(params.id)) };
    },
    updateSchedule: async ({ caller: { scope }, params, body }) => {
      return { kind: 'answer', status: 200, json: scope.schedules.view(await scope.schedules.update(params.id, body)) };
    },
    deleteSchedule: async ({ caller: { scope }, params }) => {
      await scope.schedules.remove(params.id);
      return { kind: 'answer', status: 204 };
    },
    runSchedule: async ({ caller: { scope }, params }) => {
      return { kind: 'answer', status: 202, json: scope.schedules.runs.view(await scope.schedules.run(params.id)) };
    },
    listScheduleRuns: async ({ caller: { scope }, params, query }) => {
      const runs = await scope.schedules.history(params.id, query.limit);
      return { kind: 'answer', status: 200, json: runs.map((run) => scope.schedules.runs.view(run)) };
    },
  };
}

type McpServerHandlers = Pick<Handlers, 'listMcpServers' | 'getMcpServer' | 'putMcpServer' | 'deleteMcpServer' | 'testMcpServer'>;

/** The MCP servers that a tenant attaches. A change here asks the server for its tools; turns do so in their worker. */
export function mcpServerHandlers({ mcpServers }: { readonly mcpServers: Pick<McpServers, 'freshTools'> }): McpServerHandlers {
  return {
    listMcpServers: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.mcp.list() }),
    getMcpServer: async ({ caller, params }) => ({ kind: 'answer', status: 200, json: await caller.scope.mcp.find(params.name) }),
    putMcpServer: async ({ caller, params, body }) => {
      const { view, created } = await caller.scope.mcp.put(params.name, body);
      return { kind: 'answer', status: created ? 201 : 200, json: view };
    },
    deleteMcpServer: async ({ caller, params }) => {
      await caller.scope.mcp.remove(params.name);
      return { kind: 'answer', status: 204 };
    },
    testMcpServer: async ({ caller, params, response }) => {
      const server = await caller.scope.mcp.open(params.name);
      const asked = mcpServers.freshTools(caller.scope.tenantId, server, goneSignal(response));
      return { kind: 'answer', status: 200, json: await asked.then(toTestResult, toTestFailure) };
    },
  };
}

function toTestResult({ protocolVersion, tools }: Awaited<ReturnType<McpServers['freshTools']>>): McpServerTest {
  return { ok: true, protocolVersion, tools: tools.map(({ name, description }) => ({ name, description })), problem: null };
}

function toTestFailure(error: unknown): McpServerTest {
  if (!(error instanceof McpServerError)) throw error;
  return { ok: false, protocolVersion: null, tools: [], problem: error.message };
}

/** The web widget as its owner sets it up. */
export function widgetSettingsHandlers(): Pick<Handlers, 'getWidget' | 'putWidget' | 'rotateWidgetKey' | 'rotateWidgetSecret'> {
  return {
    getWidget: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.widget.view() }),
    putWidget: async ({ caller, body }) => ({ kind: 'answer', status: 200, json: await caller.scope.widget.put(body) }),
    rotateWidgetKey: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.widget.rotateKey() }),
    rotateWidgetSecret: async ({ caller }) => ({ kind: 'answer', status: 201, json: { secret: await caller.scope.widget.rotateSecret() } }),
  };
}

export interface UsageHandlersOptions {
  readonly budgets: Pick<Budgets, 'view'>;
  readonly now?: () => number;
}

export function usageHandlers({ budgets: stored, now = Date.now }: UsageHandlersOptions): Pick<Handlers, 'getUsage'> {
  return {
    getUsage: async ({ caller, query }) => {
      const days = usageDays(query, now());
      const items = await caller.scope.index.usage(days);
      const budgets = await stored.view(caller.scope);
      return { kind: 'answer', status: 200, json: { ...days, items, total: totalUsage(items), ...(budgets !== undefined && { budgets }) } };
    },
  };
}
