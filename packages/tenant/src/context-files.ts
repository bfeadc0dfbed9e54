import { join } from 'node:path';
import { AppError, limits, withoutSpans, type Skill } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import { HeldFolder } from './path-walk.ts';
import { contactBase } from './memory-files.ts';
import { decodeText } from './tenant-files.ts';
import { readPlainFile } from './plain-file.ts';
import { SharedRun } from './shared-run.ts';
import type { Skills } from './skills.ts';
import { StatCache } from './stat-cache.ts';

/** In the order in which they stand in the prompt; BOOTSTRAP* follow, by name (service interface, rule 3). */
const sharedFiles = ['IDENTITY.md', 'SOUL.md', 'USER.md', 'AGENTS.md', 'TOOLS.md', 'MEMORY.md'] as const;
/** Of these the cs agent gets the contact's own: nothing of the owner's notes reaches a stranger's conversation. */
const personalFiles: ReadonlySet<string> = new Set(['USER.md', 'MEMORY.md']);
const heartbeatFile = 'HEARTBEAT.md';
const cachedFilesMax = 200;

export interface ContextFile {
  /** As in the tenant's folder, such as `IDENTITY.md`. */
  readonly name: string;
  readonly text: string;
}

export interface AgentContext {
  /** Those that are there and not empty, in prompt order. */
  readonly files: readonly ContextFile[];
  /** HEARTBEAT.md as it is; null when it is missing or holds nothing but blank lines and comments. */
  readonly heartbeat: string | null;
  readonly skills: readonly Skill[];
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

interface OwnerContext {
  readonly texts: ReadonlyMap<string, string>;
  readonly skills: readonly Skill[];
}

/**
 * What the prompt is built from, as it is on disk at the start of a turn. Contents are kept in memory and each file is asked
 * by `lstat` whether it has changed; turns that start at the same time share the asking.
 */
export class ContextFiles {
  readonly #root: string;
  readonly #skills: Skills;
  readonly #log: Log;
  readonly #owner = new SharedRun(async () => this.#loadOwner());
  readonly #bootstrapNames = new StatCache<string[]>(1);
  readonly #texts = new StatCache<{ readonly text: string | undefined }>(cachedFilesMax);

  constructor({ root, skills, log }: ContextFilesOptions) {
    this.#root = root;
    this.#skills = skills;
    this.#log = log;
  }

  /** An edit that was on disk before the call is in the answer. A file that cannot be used is logged and left out. */
  async load({ agent, sender, memory = agent === 'cs' ? 'contact' : 'owner' }: ContextRequest): Promise<AgentContext> {
    const { texts, skills } = await this.#owner.run();
    const personal = memory === 'owner' ? texts : await this.#loadContact(sender);
    const files: ContextFile[] = [];
    for (const name of texts.keys()) if (name !== heartbeatFile && !personalFiles.has(name)) add(files, name, texts);
    for (const name of personalFiles) add(files, name, personal);
    return { files: files.toSorted(byPromptOrder), heartbeat: heartbeatOf(texts.get(heartbeatFile)), skills };
  }

  async #loadOwner(): Promise<OwnerContext> {
    const names = [...sharedFiles, ...(await this.#bootstraps()), heartbeatFile];
    const [texts, skills] = await Promise.all([this.#loadTexts([], names), this.#skills.list()]);
    return { texts, skills };
  }

  async #loadContact(sender: string | null): Promise<ReadonlyMap<string, string>> {
    return sender === null ? new Map() : this.#loadTexts(contactBase(sender), [...personalFiles]);
  }

  async #loadTexts(folder: readonly string[], names: readonly string[]): Promise<Map<string, string>> {
    const texts = await Promise.all(names.map(async (name) => this.#text(folder, name)));
    const found = new Map<string, string>();
    for (const [index, name] of names.entries()) {
      const text = texts[index];
      if (text !== undefined && text.trim() !== '') found.set(name, text);
    }
    return found;
  }

  async #text(folder: readonly string[], name: string): Promise<string | undefined> {
    return (await this.#texts.get(join(this.#root, ...folder, name), async () => ({ text: await this.#read(folder, name) })))?.text;
  }

  async #read(folder: readonly string[], name: string): Promise<string | undefined> {
    try {
      await using held = await HeldFolder.walk(this.#root, folder);
      return decodeText((await readPlainFile(held, name, limits.fileMaxBytes)).bytes);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.code !== 'not_found') this.#log.warn({ file: name, code: error.code, err: error }, 'context file cannot be used');
      return undefined;
    }
  }

  async #bootstraps(): Promise<string[]> {
    const names = await this.#bootstrapNames.get(this.#root, async () => {
      await using held = await HeldFolder.open(this.#root);
      return (await held.names()).filter((name) => /^BOOTSTRAP.*\.md$/u.test(name)).toSorted();
    });
    return names ?? [];
  }
}

function add(files: ContextFile[], name: string, texts: ReadonlyMap<string, string>): void {
  const text = texts.get(name);
  if (text !== undefined) files.push({ name, text });
}

function byPromptOrder(a: ContextFile, b: ContextFile): number {
  return placeOf(a.name) - placeOf(b.name) || (a.name < b.name ? -1 : 1);
}

function placeOf(name: string): number {
  const place = sharedFiles.findIndex((shared) => shared === name);
  return place === -1 ? sharedFiles.length : place;
}

function heartbeatOf(text: string | undefined): string | null {
  return text === undefined || withoutSpans(text, '<!--', '-->').trim() === '' ? null : text;
}
