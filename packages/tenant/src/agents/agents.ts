import { join } from 'node:path';
import {
  AgentFrontMatter,
  AppError,
  builtInAgent,
  builtInAgents,
  invalidFieldsText,
  isOwnAgentName,
  toFieldProblems,
  type AgentDefinition,
  type FileProblem,
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

/** Why a file cannot be used; may be shown to the tenant. */
export interface BrokenFile {
  readonly reason: string;
  /** The same, one each. */
  readonly problems: readonly FileProblem[];
}

export interface InvalidAgent extends BrokenFile {
  readonly name: string;
  readonly path: string;
}

export interface AgentScan {
  /** By name. */
  readonly valid: readonly OwnAgent[];
  readonly invalid: readonly InvalidAgent[];
}

/** What is under a name: an agent, or why there is none. */
export type FoundAgent = { readonly agent: OwnAgent } | BrokenFile;

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
      else invalid.push({ name, path: toAgentPath(name), ...found });
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
    const wrongName = findWrongName(name);
    if (wrongName !== null) return describeUnusable(wrongName);
    try {
      return readAgentText(name, (await this.#files.readText(toAgentPath(name), { maxBytes: agentFileMaxBytes })).text);
    } catch (error) {
      if (error instanceof AppError) return describeUnreadable(error);
      throw error;
    }
  }
}

function findWrongName(name: string): FileProblem | null {
  if (builtInAgent(name) !== undefined)
    return { message: `the name ${name} belongs to a built-in agent`, code: 'agent_name_taken', params: { name } };
  if (isOwnAgentName(name)) return null;
  const message = 'the file name must be lower-case letters, digits and inner hyphens, at most 64';
  return { message, code: 'agent_file_name', params: {} };
}

/** A file with one thing wrong with it. */
export function describeUnusable(problem: FileProblem): BrokenFile {
  return { reason: problem.message, problems: [problem] };
}

/** A file that could not be read as text. */
export function describeUnreadable({ message }: AppError): BrokenFile {
  return describeUnusable({ message, code: 'file_unreadable', params: { reason: message } });
}

/** The text of agents/<name>.md as an agent, or why it is none. */
export function readAgentText(name: string, text: string): FoundAgent {
  const wrongName = findWrongName(name);
  if (wrongName !== null) return describeUnusable(wrongName);
  try {
    return parseAgent(name, text);
  } catch (error) {
    if (error instanceof FrontMatterError) return describeUnusable(error.problem);
    throw error;
  }
}

function parseAgent(name: string, text: string): FoundAgent {
  const { data, body } = parseFrontMatter(text);
  const parsed = AgentFrontMatter.safeParse(data);
  if (!parsed.success) return { reason: `front matter: ${invalidFieldsText(parsed.error)}`, problems: toFieldProblems(parsed.error) };
  const { description, public: isPublic, ...rest } = parsed.data;
  // It stands in lists, one line each.
  const line = description.replaceAll(/\s+/gu, ' ');
  return { agent: { ...rest, name, description: line, access: isPublic ? 'cs' : 'admin', body: body.trim() } };
}

function toAgentPath(name: string): string {
  return `${folderName}/${name}${suffix}`;
}
