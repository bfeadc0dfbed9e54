import {
  agentRules,
  AppError,
  countPromptCharacters,
  toolsOfAgent,
  toolTokens,
  toPromptParts,
  type AgentDefinition,
  type PartChange,
  type PromptPart,
  type PromptPreview,
  type Session,
  type TurnRecord,
} from '@concierge/contract';
import { digestPart, measurePart, readAgentText, toNotesOwner, type AgentContext, type TenantScope } from '@concierge/tenant';
import { usableAgents } from '../chat/key-permissions.ts';
import type { Handlers } from '../http/call.ts';
import { readAgentName } from './files.ts';

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
  const parts = await Promise.all(
    listed.map(async (part) => {
      const compared = compare(part, await findPath(scope, part.name, memory), known);
      return { ...compared, version: compared.change === 'changed' ? await findVersion(scope, part.name, known) : null };
    }),
  );
  const gone = await Promise.all(
    (known?.parts ?? [])
      .filter(({ name }) => isCompared(name) && !listed.some((part) => part.name === name))
      .map(async ({ name, tokens }) => ({
        name,
        tokens: 0,
        path: null,
        tokensBefore: tokens,
        change: 'gone' as const,
        version: await findVersion(scope, name, known),
      })),
  );
  return {
    agent: agent.name,
    contact_id: session?.id ?? null,
    model: model ?? null,
    comparedWith: last === undefined ? null : { turnId: last.turnId, at: last.prompt.at },
    tokens: listed.reduce((sum, { tokens }) => sum + tokens, 0),
    parts: [...parts, ...gone],
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
function listParts({ files, heartbeat, skills }: AgentContext, { agent, session, tools }: Counted): PromptPart[] {
  const body = 'body' in agent && typeof agent.body === 'string' ? agent.body : '';
  const lasting = toPromptParts([
    ...files.map(({ name, text }) => measurePart(name, text)),
    measurePart('HEARTBEAT.md', heartbeat ?? ''),
    measurePart(`agents/${agent.name}.md`, body),
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
  { name, tokens, digest }: PromptPart,
  file: PartFile | undefined,
  known: KnownPrompt | undefined,
): Omit<PromptPreview['parts'][number], 'version'> {
  const before = known?.parts.find((part) => part.name === name);
  return { name, tokens, path: file?.path ?? null, tokensBefore: before?.tokens ?? null, change: findChange() };

  function findChange(): PartChange | null {
    if (known === undefined || !isCompared(name)) return null;
    if (before === undefined) return 'new';
    if (before.digest !== undefined && before.digest === digest) return 'same';
    const isEdited = file !== undefined && file.mtimeMs > Date.parse(known.at);
    return before.tokens === tokens && !isEdited ? 'same' : 'changed';
  }
}

/** The version of a part's file that the prompt had: the one with the digest that the record of the turn has. */
async function findVersion({ fileHistory }: TenantScope, name: string, known: KnownPrompt | undefined): Promise<string | null> {
  const digest = known?.parts.find((part) => part.name === name)?.digest;
  if (digest === undefined) return null;
  const isMeant = (text: string): boolean => digestPart(readPart(name, text)) === digest;
  return (await fileHistory.findText(name, isMeant)) ?? null;
}

/** What a prompt has of a file: of an agent what stands below its front matter, of any other all. */
function readPart(path: string, text: string): string {
  const agentName = readAgentName(path);
  if (agentName === undefined) return text;
  const found = readAgentText(agentName, text);
  return 'agent' in found ? found.agent.body : text;
}
