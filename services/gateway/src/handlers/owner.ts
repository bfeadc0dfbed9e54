import { pipeline } from 'node:stream/promises';
import {
  agentRules,
  findToolRefusal,
  isMcpToolName,
  isSharedPath,
  type AgentDefinition,
  type PolicyRule,
  type PolicyVerdict,
} from '@concierge/contract';
import type { TenantOperations } from '@concierge/core/tenant-operations';
import { findPathProblem, type TenantScope } from '@concierge/tenant';
import { callableAgent } from '../chat/key-permissions.ts';
import { streamed, type Handlers } from '../http/call.ts';
import type { TenantHandlersOptions } from './tenant.ts';

export interface OwnerHandlersOptions extends Pick<TenantHandlersOptions, 'isDemo'> {
  readonly publicUrl: string | undefined;
  /** Do owners get e-mails? null: not known. */
  readonly sendsEmail: () => Promise<boolean | null>;
  readonly exports: Pick<TenantOperations, 'exportScope'>;
}

/** What owners see and take of their tenant beyond its settings. */
export function ownerHandlers({
  isDemo,
  publicUrl,
  sendsEmail,
  exports,
}: OwnerHandlersOptions): Pick<Handlers, 'whoAmI' | 'checkPolicy' | 'exportOwnTenant'> {
  return {
    whoAmI: async ({ caller: { scope, key } }) => {
      const [settings, demoModel, email] = await Promise.all([scope.settings(), isDemo(), sendsEmail()]);
      const { name = null, plan, limits = {}, timezone = 'UTC' } = settings;
      const { id: keyId, scopes } = key;
      const service = { demoModel, publicUrl: publicUrl ?? null, sendsEmail: email };
      return { kind: 'answer', status: 200, json: { tenantId: scope.tenantId, name, keyId, scopes, plan, limits, timezone, ...service } };
    },
    checkPolicy: async ({ caller, body }) => {
      const agent = await callableAgent(caller, body.agent);
      const rule = await findRule(caller.scope, agent, body);
      return { kind: 'answer', status: 200, json: { allowed: rule === 'none', rule, reason: explain(rule, agent, body.tool) } };
    },
    exportOwnTenant: async ({ caller: { scope, key }, requestId, response }) => {
      const { bytes } = await exports.exportScope(scope);
      // Before the first byte: a client that leaves in the middle has some of it.
      const by = { kind: 'key', keyId: key.id } as const;
      await scope.audit.record({ act: 'tenant.export', by, target: null, tenantId: scope.tenantId, requestId });
      response.status(200).set({
        'Content-Type': 'application/gzip',
        'Content-Disposition': `attachment; filename="${scope.tenantId}.tar.gz"`,
      });
      await pipeline(bytes, response);
      return streamed;
    },
  };
}

interface Asked {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** The first rule that refuses the call: each is the one that a turn asks. */
async function findRule(scope: TenantScope, agent: AgentDefinition, { tool, arguments: input }: Asked): Promise<PolicyRule> {
  const settings = await scope.settings();
  const { access } = agent;
  const byFile = findToolRefusal(tool, { access, allow: agent.tools });
  if (byFile !== undefined) return byFile === 'not_listed' ? 'agent_file' : byFile;
  const { allow } = agentRules(agent, settings);
  if (findToolRefusal(tool, { access, allow }) !== undefined) return 'settings';
  if (isMcpToolName(tool) && !(await isAttached(scope, agent.name, tool))) return 'mcp_server';
  return isPathRefused(agent, tool, input['path']) ? 'path' : 'none';
}

/** A server that is attached to the agent brings it, and its list, where there is one, names it. */
async function isAttached(scope: TenantScope, agent: string, tool: string): Promise<boolean> {
  const servers = await scope.mcp.attachedTo(agent);
  return servers.some(({ name, tools }) => {
    const prefix = `mcp__${name}__`;
    return tool.startsWith(prefix) && (tools?.includes(tool.slice(prefix.length)) ?? true);
  });
}

const fileTools: ReadonlySet<string> = new Set(['read', 'write', 'edit', 'list_files', 'search_files']);

function isPathRefused({ access }: AgentDefinition, tool: string, path: unknown): boolean {
  if (!fileTools.has(tool) || typeof path !== 'string' || path === '') return false;
  return findPathProblem(path) !== undefined || (access === 'cs' && !isSharedPath(path));
}

function explain(rule: PolicyRule, { name, access }: AgentDefinition, tool: string): PolicyVerdict['reason'] {
  switch (rule) {
    case 'none':
      return `${name} may call ${tool}.`;
    case 'unknown_tool':
      return `There is no tool ${tool}.`;
    case 'access':
      return `${name} has the access ${access}, and ${tool} is for agents with the access admin. What strangers may use is fixed.`;
    case 'agent_file':
      return `The list \`tools\` in agents/${name}.md does not name ${tool}.`;
    case 'settings':
      return `The setting agents.${name}.tools does not name ${tool}.`;
    case 'mcp_server':
      return `No MCP server that is attached to ${name} brings ${tool}.`;
    case 'path':
      return access === 'cs'
        ? `${name} sees only what is under skills/ and templates/.`
        : 'The path leads out of the workspace, or to state that only the service itself writes.';
  }
}
