import { isUtf8 } from 'node:buffer';
import type { Actor, FileItem, FileProblem } from '@concierge/contract';
import {
  isMemoryPath,
  readAgentText,
  readSkillText,
  type FileEntry,
  type OwnAgent,
  type TenantScope,
  type BrokenFile,
} from '@concierge/tenant';
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
      const found = await findProblem(caller.scope, params.path);
      const warnings = await listWarnings(caller.scope, modelNames, params.path);
      const json = { ...found, ...(warnings.length > 0 && { warnings }) };
      const answer = { kind: 'answer', headers: { ETag: etag } } as const;
      if (created) return { ...answer, status: 201, json };
      return found.problem === null && warnings.length === 0 ? { ...answer, status: 204 } : { ...answer, status: 200, json };
    },
    checkFile: async ({ caller, params, body }) => {
      const { found, agents } = checkText(params.path, body);
      const warnings = await modelNames.smallWindows(agents, await caller.scope.settings());
      return { kind: 'answer', status: 200, json: { ...found, ...(warnings.length > 0 && { warnings }) } };
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
      return { kind: 'answer', status: 200, json: await findProblem(caller.scope, params.path), headers: { ETag: etag } };
    },
  };
}

function toActor({ key }: Caller): Actor {
  return { kind: 'key', keyId: key.id };
}

/** As answers say it. */
interface WhatIsWrong {
  readonly problem: string | null;
  readonly problems?: FileProblem[];
}

function explain(found: BrokenFile | undefined): WhatIsWrong {
  return found === undefined ? { problem: null } : { problem: found.reason, problems: [...found.problems] };
}

/** Why the agent or skill that this file defines cannot be used. */
async function findProblem({ agents, skills }: TenantScope, path: string): Promise<WhatIsWrong> {
  const kind = readAgentName(path) === undefined ? skills : agents;
  if (kind === skills && readSkillName(path) === undefined) return explain(undefined);
  return explain((await kind.scan()).invalid.find((file) => file.path === path));
}

/** What `findProblem` would find in a file with this text, and the agent that it would be. */
function checkText(path: string, text: string): { readonly found: WhatIsWrong; readonly agents: readonly OwnAgent[] } {
  const agentName = readAgentName(path);
  if (agentName !== undefined) {
    const found = readAgentText(agentName, text);
    return 'agent' in found ? { found: explain(undefined), agents: [found.agent] } : { found: explain(found), agents: [] };
  }
  const skillName = readSkillName(path);
  if (skillName === undefined) return { found: explain(undefined), agents: [] };
  const found = readSkillText(skillName, text);
  return { found: explain('skill' in found ? undefined : found), agents: [] };
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
