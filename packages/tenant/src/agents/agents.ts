import { join } from 'node:path';
import {
  AgentFrontMatter,
  AppError,
  builtInAgent,
  builtInAgents,
  invalidFieldsText,
  isOwnAgentName,
  type AgentDefinition,
} from '@concierge/contract';
import { FolderHandle, SharedRun, StatCache } from '@concierge/files';
import { FrontMatterError, parseFrontMatter } from './front-matter.ts';
import type { TenantFiles } from '../files/tenant-files.ts';

const folderName = 'agents';
const suffix = '.md';
const agentFileMaxBytes = 256 * 1024;
const agentsMax = 200;

/** An agent of the tenant's own. */
export interface OwnAgent extends AgentDefinition {
  /** Its part of the prompt: what follows the front matter. */
  readonly body: string;
}

export interface InvalidAgent {
  readonly name: string;
  readonly path: string;
  /** May be shown to the tenant. */
  readonly reason: string;
}

export interface AgentScan {
  /** By name. */
  readonly valid: readonly OwnAgent[];
  readonly invalid: readonly InvalidAgent[];
}

/** What is under a name: an agent, or why there is none. */
export type FoundAgent = { readonly agent: OwnAgent } | { readonly reason: string };

/**
 * agents/<name>.md. Read as they are on disk at the moment of asking; front matter is parsed once per change of a file.
 * The names of the built-in agents are taken.
 */
export class Agents {
  readonly #root: string;
  readonly #files: TenantFiles;
  readonly #scan = new SharedRun(async () => this.#scanFiles());
  readonly #names = new StatCache<string[]>(1);
  readonly #found = new StatCache<FoundAgent>(agentsMax);

  /** `root`: the tenant's folder. */
  constructor(root: string, files: TenantFiles) {
    this.#root = root;
    this.#files = files;
  }

  /** All files as they are now: one `lstat` each, shared by all who ask at once. */
  async scan(): Promise<AgentScan> {
    return this.#scan.run();
  }

  /** Every name that an agent has, or would have if its file could be used: the built-in ones first. */
  async names(): Promise<string[]> {
    return [...builtInAgents.map(({ name }) => name), ...(await this.#fileNames()).filter((name) => isOwnAgentName(name))];
  }

  /** One agent: a single `lstat` when its file has not changed. undefined when there is no such file. */
  async find(name: string): Promise<FoundAgent | undefined> {
    return isOwnAgentName(name) ? this.#look(name) : undefined;
  }

  async #look(name: string): Promise<FoundAgent | undefined> {
    return this.#found.get(join(this.#root, toAgentPath(name)), async () => this.#read(name));
  }

  async #scanFiles(): Promise<AgentScan> {
    const valid: OwnAgent[] = [];
    const invalid: InvalidAgent[] = [];
    for (const name of await this.#fileNames()) {
      const found = await this.#look(name);
      if (found === undefined) continue;
      if ('agent' in found) valid.push(found.agent);
      else invalid.push({ name, path: toAgentPath(name), reason: found.reason });
    }
    return { valid, invalid };
  }

  /** Markdown files only: anything else in the folder is not an agent and not an error. */
  async #fileNames(): Promise<string[]> {
    const names = await this.#names.get(join(this.#root, folderName), async () => {
      try {
        await using folder = await FolderHandle.walk(this.#root, [folderName]);
        const files = (await folder.names()).filter((name) => name.endsWith(suffix) && !name.startsWith('.'));
        return files
          .map((name) => name.slice(0, -suffix.length))
          .toSorted()
          .slice(0, agentsMax);
      } catch (error) {
        if (error instanceof AppError) return [];
        throw error;
      }
    });
    return names ?? [];
  }

  async #read(name: string): Promise<FoundAgent> {
    const reason = findWrongName(name);
    if (reason !== null) return { reason };
    try {
      return readAgentText(name, (await this.#files.readText(toAgentPath(name), { maxBytes: agentFileMaxBytes })).text);
    } catch (error) {
      if (error instanceof AppError) return { reason: error.message };
      throw error;
    }
  }
}

function findWrongName(name: string): string | null {
  if (builtInAgent(name) !== undefined) return `the name ${name} belongs to a built-in agent`;
  return isOwnAgentName(name) ? null : 'the file name must be lower-case letters, digits and inner hyphens, at most 64';
}

/** The text of agents/<name>.md as an agent, or why it is none. */
export function readAgentText(name: string, text: string): FoundAgent {
  const reason = findWrongName(name);
  if (reason !== null) return { reason };
  try {
    return parseAgent(name, text);
  } catch (error) {
    if (error instanceof FrontMatterError) return { reason: error.message };
    throw error;
  }
}

function parseAgent(name: string, text: string): FoundAgent {
  const { data, body } = parseFrontMatter(text);
  const parsed = AgentFrontMatter.safeParse(data);
  if (!parsed.success) return { reason: `front matter: ${invalidFieldsText(parsed.error)}` };
  const { description, public: isPublic, ...rest } = parsed.data;
  // It stands in lists, one line each.
  const line = description.replaceAll(/\s+/gu, ' ');
  return { agent: { ...rest, name, description: line, access: isPublic ? 'cs' : 'admin', body: body.trim() } };
}

function toAgentPath(name: string): string {
  return `${folderName}/${name}${suffix}`;
}
