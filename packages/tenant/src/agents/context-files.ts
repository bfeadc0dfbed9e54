import { join } from 'node:path';
import { AppError, limits, withoutSpans, type Skill } from '@concierge/contract';
import { FolderHandle, isSystemError, readPlainHead, SharedRun, StatCache } from '@concierge/files';
import type { Log } from '@concierge/runtime';
import { contactBase } from '../memory-search/memory-files.ts';
import { decodeHead } from '../files/tenant-files.ts';
import type { Skills } from '../skills/skills.ts';

/** In the order in which they stand in the prompt; BOOTSTRAP* follow, by name (service interface, rule 3). */
const sharedFiles = ['IDENTITY.md', 'SOUL.md', 'USER.md', 'AGENTS.md', 'TOOLS.md', 'MEMORY.md'] as const;
/**
 * The cs agent gets the contact's own version of these: nothing of the owner's notes reaches a stranger's conversation.
 */
const personalFiles: ReadonlySet<string> = new Set(['USER.md', 'MEMORY.md']);
const heartbeatFile = 'HEARTBEAT.md';
const cachedFilesMax = 200;

export interface ContextFile {
  /** As in the tenant's folder, such as `IDENTITY.md`. */
  readonly name: string;
  /** Its beginning, at most `contextFileMaxBytes`. */
  readonly text: string;
  /** Size of the whole file. */
  readonly bytes: number;
}

/** A context file that no prompt can have. */
export interface UnusableFile {
  readonly name: string;
  /** May be shown to the tenant. */
  readonly reason: string;
}

export interface AgentContext {
  /** The files that exist and are not empty, in prompt order. */
  readonly files: readonly ContextFile[];
  /** HEARTBEAT.md as it is, or its beginning; null when it is missing or holds nothing but blank lines and comments. */
  readonly heartbeat: string | null;
  /** Size of the whole HEARTBEAT.md. */
  readonly heartbeatBytes: number;
  readonly skills: readonly Skill[];
  /** What was left out. */
  readonly unusable: readonly UnusableFile[];
}

export interface ContextRequest {
  readonly agent: string;
  readonly sender: string | null;
  /** Whose USER.md and MEMORY.md: by default the contact's for the agent `cs`, the owner's for any other. */
  readonly memory?: 'owner' | 'contact';
}

export interface ContextFilesOptions {
  /** The tenant's folder. */
  readonly root: string;
  readonly skills: Skills;
  readonly log: Log;
}

interface LoadedFile {
  readonly text: string;
  readonly bytes: number;
  /** Why it cannot be used; its text is then empty. */
  readonly reason: string | null;
}

const missing: LoadedFile = { text: '', bytes: 0, reason: null };

type LoadedFiles = ReadonlyMap<string, LoadedFile>;

interface OwnerContext {
  /** In prompt order. */
  readonly names: readonly string[];
  readonly loaded: LoadedFiles;
  readonly skills: readonly Skill[];
}

/**
 * What the prompt is built from, as it is on disk at the start of a turn. Contents are kept in memory and each file is
 * asked by `lstat` whether it has changed; turns that start at the same time share the asking.
 */
export class ContextFiles {
  readonly #root: string;
  readonly #skills: Skills;
  readonly #log: Log;
  readonly #owner = new SharedRun(async () => this.#loadOwner());
  readonly #bootstrapNames = new StatCache<string[]>(1);
  readonly #files = new StatCache<LoadedFile>(cachedFilesMax);

  constructor({ root, skills, log }: ContextFilesOptions) {
    this.#root = root;
    this.#skills = skills;
    this.#log = log;
  }

  /** An edit that was on disk before the call is in the answer. A file that cannot be used is named and left out. */
  async load({ agent, sender, memory = agent === 'cs' ? 'contact' : 'owner' }: ContextRequest): Promise<AgentContext> {
    const { names, loaded, skills } = await this.#owner.run();
    const personal = memory === 'owner' ? loaded : await this.#loadContact(sender);
    const files: ContextFile[] = [];
    const unusable: UnusableFile[] = [];
    for (const name of names) {
      const { text, bytes, reason } = (personalFiles.has(name) ? personal : loaded).get(name) ?? missing;
      if (reason !== null) unusable.push({ name, reason });
      else if (name !== heartbeatFile && text.trim() !== '') files.push({ name, text, bytes });
    }
    return { files, ...readHeartbeat(loaded.get(heartbeatFile)), skills, unusable };
  }

  async #loadOwner(): Promise<OwnerContext> {
    const bootstraps = await this.#bootstraps();
    const names = [...sharedFiles, ...bootstraps.slice(0, limits.bootstrapFilesMax), heartbeatFile];
    const [loaded, skills] = await Promise.all([this.#loadFiles([], names), this.#skills.list()]);
    const tooMany = bootstraps[limits.bootstrapFilesMax];
    if (tooMany !== undefined) {
      names.push(tooMany);
      loaded.set(tooMany, { text: '', bytes: 0, reason: `a prompt has at most ${String(limits.bootstrapFilesMax)} BOOTSTRAP files` });
    }
    return { names, loaded, skills };
  }

  async #loadContact(sender: string | null): Promise<LoadedFiles> {
    return sender === null ? new Map() : this.#loadFiles(contactBase(sender), [...personalFiles]);
  }

  async #loadFiles(folder: readonly string[], names: readonly string[]): Promise<Map<string, LoadedFile>> {
    const found = new Map<string, LoadedFile>();
    const load = async (name: string): Promise<void> => {
      const file = await this.#files.get(join(this.#root, ...folder, name), async () => this.#read(folder, name));
      if (file !== undefined) found.set(name, file);
    };
    await Promise.all(names.map(load));
    return found;
  }

  /** Never throws over what a tenant can do to a file: its turns must not fail by it. */
  async #read(folder: readonly string[], name: string): Promise<LoadedFile> {
    try {
      await using held = await FolderHandle.walk(this.#root, folder);
      const { bytes, size } = await readPlainHead(held, name, limits.contextFileMaxBytes);
      return { text: decodeHead(bytes), bytes: size, reason: null };
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') return missing;
      if (!(error instanceof AppError) && !isSystemError(error, 'EACCES', 'EPERM', 'EISDIR', 'ELOOP', 'ENXIO')) throw error;
      this.#log.warn({ file: name, err: error }, 'context file cannot be used');
      return { text: '', bytes: 0, reason: error instanceof AppError ? error.message : 'It cannot be opened.' };
    }
  }

  async #bootstraps(): Promise<string[]> {
    const names = await this.#bootstrapNames.get(this.#root, async () => {
      await using held = await FolderHandle.open(this.#root);
      return (await held.names()).filter((name) => /^BOOTSTRAP.*\.md$/u.test(name)).toSorted();
    });
    return names ?? [];
  }
}

function readHeartbeat({ text, bytes }: LoadedFile = missing): Pick<AgentContext, 'heartbeat' | 'heartbeatBytes'> {
  return { heartbeat: withoutSpans(text, '<!--', '-->').trim() === '' ? null : text, heartbeatBytes: bytes };
}
