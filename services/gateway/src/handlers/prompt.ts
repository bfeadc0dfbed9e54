import {
  agentRules,
  AppError,
  countPromptCharacters,
  toolsOfAgent,
  toolTokens,
  toPromptParts,
  type AgentDefinition,
  type PartChange,
  type PromptPreview,
  type Session,
  type TurnRecord,
} from '@concierge/contract';
import { toNotesOwner, type AgentContext, type TenantScope } from '@concierge/tenant';
import { usableAgents } from '../chat/key-permissions.ts';
import type { Handlers } from '../http/call.ts';

type KnownPrompt = NonNullable<NonNullable<TurnRecord['trace']>['prompt']>;

/** What the model sees at the next turn: read as a turn reads it, and nothing is run. */
export function promptHandlers(): Pick<Handlers, 'previewPrompt'> {
  return {
    previewPrompt: async ({ caller, query: { agent: asked, session: id } }) => {
      const session = id === undefined ? undefined : await loadSession(caller.scope, id);
      const name = asked ?? session?.agent ?? 'admin';
      if (session !== undefined && session.agent !== name) {
        throw new AppError('invalid_request', undefined, { errors: [{ path: 'agent', message: 'is not the agent of this conversation' }] });
      }
      const agent = (await usableAgents(caller.scope)).find((usable) => usable.name === name);
      if (agent === undefined) throw new AppError('not_found', 'There is no such agent.');
      return { kind: 'answer', status: 200, json: await preview(caller.scope, agent, session) };
    },
  };
}

async function loadSession(scope: TenantScope, id: string): Promise<Session> {
  const session = await scope.sessions.load(id);
  if (session === undefined) throw new AppError('not_found', 'There is no such session.');
  return session;
}

async function preview(scope: TenantScope, agent: AgentDefinition, session: Session | undefined): Promise<PromptPreview> {
  const settings = await scope.settings();
  const { allow, model } = agentRules(agent, settings);
  const memory = agent.access === 'cs' ? 'contact' : 'owner';
  const sender = session === undefined ? null : toNotesOwner({ sender: session.sender, sessionId: session.id });
  const context = await scope.context.load({ agent: agent.name, sender, memory });
  const last = findLastPrompt(session);
  const known = last?.prompt;
  const listed = listParts(context, { agent, session, tools: toolTokens(agent.access, toolsOfAgent(agent.access, allow).length) });
  const parts = await Promise.all(listed.map(async (part) => compare(part, await findPath(scope, part.name, memory), known)));
  const gone = (known?.parts ?? []).filter(({ name }) => isCompared(name) && !listed.some((part) => part.name === name));
  return {
    agent: agent.name,
    contact_id: session?.id ?? null,
    model: model ?? null,
    comparedWith: last === undefined ? null : { turnId: last.turnId, at: last.prompt.at },
    tokens: listed.reduce((sum, { tokens }) => sum + tokens, 0),
    parts: [...parts, ...gone.map(({ name, tokens }) => ({ name, tokens: 0, path: null, tokensBefore: tokens, change: 'gone' as const }))],
    unusable: [...context.unusable],
  };
}

/** The newest prompt of the conversation that is known. */
function findLastPrompt(session: Session | undefined): { readonly turnId: string; readonly prompt: KnownPrompt } | undefined {
  const prompts = (session?.turns ?? []).flatMap(({ id: turnId, trace }) =>
    trace?.prompt === undefined ? [] : [{ turnId, prompt: trace.prompt }],
  );
  return prompts.at(-1);
}

interface Counted {
  readonly agent: AgentDefinition;
  readonly session: Session | undefined;
  readonly tools: number;
}

/** As the trace of a turn names them. */
function listParts({ files, heartbeat, skills }: AgentContext, { agent, session, tools }: Counted): { name: string; tokens: number }[] {
  const body = 'body' in agent && typeof agent.body === 'string' ? agent.body : '';
  const lasting = toPromptParts([
    ...files.map(({ name, text }) => [name, text.length] as const),
    ['HEARTBEAT.md', heartbeat?.length ?? 0],
    [`agents/${agent.name}.md`, body.length],
    ['skills', skills.reduce((sum, { name, description }) => sum + name.length + description.length, 0)],
  ]);
  const history = countPromptCharacters(session?.messages ?? []) + (session?.summary?.text.length ?? 0);
  return [...lasting, ...(tools > 0 ? [{ name: 'tools', tokens: tools }] : []), ...toPromptParts([['history', history]])];
}

/** Tools are estimated by their number before a turn, and the history of a conversation always grows. */
function isCompared(name: string): boolean {
  return !['tools', 'history', 'message'].includes(name);
}

interface PartFile {
  readonly path: string;
  readonly mtimeMs: number;
}

/** The owner's own file of this name; a contact's USER.md and MEMORY.md are notes about it. */
async function findPath(scope: TenantScope, name: string, memory: 'owner' | 'contact'): Promise<PartFile | undefined> {
  if (!name.endsWith('.md') || (memory === 'contact' && ['USER.md', 'MEMORY.md'].includes(name))) return undefined;
  const entry = await scope.files.stat(name);
  return entry === undefined ? undefined : { path: name, mtimeMs: entry.mtimeMs };
}

function compare(
  { name, tokens }: { readonly name: string; readonly tokens: number },
  file: PartFile | undefined,
  known: KnownPrompt | undefined,
): PromptPreview['parts'][number] {
  const tokensBefore = known?.parts.find((part) => part.name === name)?.tokens ?? null;
  const path = file?.path ?? null;
  return { name, tokens, path, tokensBefore, change: findChange() };

  function findChange(): PartChange | null {
    if (known === undefined || !isCompared(name)) return null;
    if (tokensBefore === null) return 'new';
    const isEdited = file !== undefined && file.mtimeMs > Date.parse(known.at);
    return tokensBefore === tokens && !isEdited ? 'same' : 'changed';
  }
}
