import { isUtf8 } from 'node:buffer';
import type { Actor, FileItem } from '@concierge/contract';
import { isMemoryPath, readAgentText, readSkillText, type FileEntry, type OwnAgent, type TenantScope } from '@concierge/tenant';
import type { Caller, Handlers } from '../http/call.ts';
import type { ModelNames } from '../openai/model-names.ts';

/** The tenant's own files. `TenantFiles` decides which paths exist and which of them are hidden. */
export function fileHandlers({
  modelNames,
}: {
  readonly modelNames: ModelNames;
}): Pick<Handlers, 'listFiles' | 'getFile' | 'putFile' | 'checkFile' | 'deleteFile' | 'listFileVersions' | 'restoreFile'> {
  return {
    listFiles: async ({ caller, query }) => {
      const { path = '', recursive, limit } = query;
      const entries = await caller.scope.files.list(path, { recursive, limit });
      return { kind: 'answer', status: 200, json: entries.map((entry) => toFileItem(entry)) };
    },
    getFile: async ({ caller, params, headers }) => {
      const { bytes, etag } = await caller.scope.files.readBytes(params.path);
      if (matches(headers['if-none-match'], etag)) return { kind: 'answer', status: 304, headers: { ETag: etag } };
      const type = isUtf8(bytes) ? 'text/plain; charset=utf-8' : 'application/octet-stream';
      return {
        kind: 'answer',
        status: 200,
        text: bytes,
        headers: { ETag: etag, 'Content-Type': type, 'Content-Length': String(bytes.length) },
      };
    },
    putFile: async ({ caller, params, headers, body }) => {
      const conditions = { ifMatch: headers['if-match'], ifNoneMatch: headers['if-none-match'] };
      const { etag, created } = await caller.scope.fileHistory.write(params.path, { text: body, by: toActor(caller), ...conditions });
      const problem = await findProblem(caller.scope, params.path);
      const warnings = await listWarnings(caller.scope, modelNames, params.path);
      const json = { problem, ...(warnings.length > 0 && { warnings }) };
      const answer = { kind: 'answer', headers: { ETag: etag } } as const;
      if (created) return { ...answer, status: 201, json };
      return problem === null && warnings.length === 0 ? { ...answer, status: 204 } : { ...answer, status: 200, json };
    },
    checkFile: async ({ caller, params, body }) => {
      const { problem, agents } = checkText(params.path, body);
      const warnings = await modelNames.smallWindows(agents, await caller.scope.settings());
      return { kind: 'answer', status: 200, json: { problem, ...(warnings.length > 0 && { warnings }) } };
    },
    deleteFile: async ({ caller, params, headers }) => {
      const { fileHistory, memorySearch } = caller.scope;
      await fileHistory.remove(params.path, { by: toActor(caller), ifMatch: headers['if-match'] });
      if (isMemoryPath(params.path)) await memorySearch.forgetNote({ access: 'owner' }, params.path);
      return { kind: 'answer', status: 204 };
    },
    listFileVersions: async ({ caller, params, query }) => ({
      kind: 'answer',
      status: 200,
      json: { path: params.path, versions: await caller.scope.fileHistory.list(params.path, query.id) },
    }),
    restoreFile: async ({ caller, params, body }) => {
      const { etag } = await caller.scope.fileHistory.restore(params.path, { id: body.id, by: toActor(caller) });
      return { kind: 'answer', status: 200, json: { problem: await findProblem(caller.scope, params.path) }, headers: { ETag: etag } };
    },
  };
}

function toActor({ key }: Caller): Actor {
  return { kind: 'key', keyId: key.id };
}

/** Why the agent or skill that this file defines cannot be used. */
async function findProblem({ agents, skills }: TenantScope, path: string): Promise<string | null> {
  const kind = readAgentName(path) === undefined ? skills : agents;
  if (kind === skills && readSkillName(path) === undefined) return null;
  return (await kind.scan()).invalid.find((file) => file.path === path)?.reason ?? null;
}

/** What `findProblem` would find in a file with this text, and the agent that it would be. */
function checkText(path: string, text: string): { readonly problem: string | null; readonly agents: readonly OwnAgent[] } {
  const agentName = readAgentName(path);
  if (agentName !== undefined) {
    const found = readAgentText(agentName, text);
    return 'agent' in found ? { problem: null, agents: [found.agent] } : { problem: found.reason, agents: [] };
  }
  const skillName = readSkillName(path);
  if (skillName === undefined) return { problem: null, agents: [] };
  const found = readSkillText(skillName, text);
  return { problem: 'problems' in found ? found.problems.join('; ') : null, agents: [] };
}

/** Warnings for an agent that can be used. */
async function listWarnings(scope: TenantScope, modelNames: ModelNames, path: string): Promise<string[]> {
  const name = readAgentName(path);
  const found = name === undefined ? undefined : (await scope.agents.scan()).valid.find((agent) => agent.name === name);
  return found === undefined ? [] : modelNames.smallWindows([found], await scope.settings());
}

export function readAgentName(path: string): string | undefined {
  return /^agents\/(?<name>[^/]+)\.md$/u.exec(path)?.groups?.['name'];
}

function readSkillName(path: string): string | undefined {
  return /^skills\/(?<name>[^/]+)\/SKILL\.md$/u.exec(path)?.groups?.['name'];
}

function toFileItem({ path, kind, size, mtimeMs }: FileEntry): FileItem {
  return { path, kind, size, updatedAt: new Date(mtimeMs).toISOString() };
}

/** `If-None-Match` compares weakly (RFC 9110, 13.1.2): a tag that a proxy has weakened still matches. */
function matches(header: string | undefined, etag: string): boolean {
  return header !== undefined && header.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//u, '') === etag);
}
