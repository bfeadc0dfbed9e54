import { mkdir, rename } from 'node:fs/promises';
import { AppError } from '@concierge/contract';
import { FolderHandle, isSystemError, removeTree, writePlainFile } from '@concierge/files';
import type { TenantFiles } from '../files/tenant-files.ts';

/** Begins with a dot: no skill of this name can be, and lists of skills leave it out. */
const versionsFolder = 'skills/.versions';
const keptPerSkill = 20;
const skillsKept = 200;
const filesListed = 500;
const idPattern = /^(\d{4}-\d{2}-\d{2}T\d{2})-(\d{2})-(\d{2})-(\d{3})$/u;

/** What a change replaced or took away: SKILL.md, a bundled file, or all of a skill that was deleted. */
export interface SkillVersion {
  /** The time of the change, as a name. */
  readonly id: string;
  readonly at: string;
  /** Relative to the skill's folder. */
  readonly files: readonly string[];
}

/**
 * skills/.versions/<skill>/<time>/…: files as they were before a change. Written before the change is made, so that a
 * crash in between leaves a version too many and never one too few. Part of the tenant's own files; the oldest go when
 * there are too many.
 */
export class SkillVersions {
  readonly #root: string;
  readonly #files: TenantFiles;

  /** `root`: the tenant's folder. */
  constructor(root: string, files: TenantFiles) {
    this.#root = root;
    this.#files = files;
  }

  /** Newest first. */
  async list(name: string): Promise<SkillVersion[]> {
    const versions: SkillVersion[] = [];
    for (const id of await this.#ids(name)) {
      const files = await this.listVersionFiles(name, id);
      // Empty: a process died between making the folder and filling it.
      if (files.length > 0) versions.push({ id, at: readVersionTime(id), files });
    }
    return versions;
  }

  /** The files of one version, SKILL.md last; none when there is no such version. */
  async listVersionFiles(name: string, id: string): Promise<string[]> {
    if (!idPattern.test(id)) return [];
    const folder = toVersionPath(name, id);
    const entries = await this.#files.list(folder, { recursive: true, limit: filesListed }).catch(unlessMissing);
    const files = entries.filter(({ kind }) => kind === 'file').map(({ path }) => path.slice(folder.length + 1));
    return files.toSorted((left, right) => Number(left === 'SKILL.md') - Number(right === 'SKILL.md'));
  }

  async read(name: string, id: string, file: string): Promise<Buffer> {
    return (await this.#files.readBytes(`${toVersionPath(name, id)}/${file}`)).bytes;
  }

  /** Keeps copies of these files of the skill; the version's id. */
  async keep(name: string, files: ReadonlyMap<string, Uint8Array>): Promise<string> {
    const id = await this.#newVersion(name);
    for (const [file, bytes] of files) {
      const parts = file.split('/');
      const names = [...toVersionPath(name, id).split('/'), ...parts.slice(0, -1)];
      await using folder = await FolderHandle.walk(this.#root, names, { create: true });
      await writePlainFile(folder, parts.at(-1) ?? file, bytes);
    }
    await this.#prune(name);
    return id;
  }

  /** Moves the whole skill to its versions, in one step. @throws AppError not_found */
  async takeAway(name: string): Promise<string> {
    await using skills = await FolderHandle.walk(this.#root, ['skills']);
    if ((await skills.stat(name))?.isDirectory() !== true) throw new AppError('not_found', 'There is no such skill.');
    const id = await this.#newVersion(name);
    await using versions = await FolderHandle.walk(this.#root, toVersionPath(name).split('/'));
    await rename(skills.at(name), versions.at(id));
    await versions.sync();
    await skills.sync();
    await this.#prune(name);
    return id;
  }

  /** The reverse: a version becomes the skill, which must not be there, in one step. */
  async bringBack(name: string, id: string): Promise<void> {
    await using skills = await FolderHandle.walk(this.#root, ['skills']);
    await using versions = await FolderHandle.walk(this.#root, toVersionPath(name).split('/'));
    await rename(versions.at(id), skills.at(name));
    await skills.sync();
    await versions.sync();
  }

  /** A new, empty folder; its name contains the time. */
  async #newVersion(name: string): Promise<string> {
    await using versions = await FolderHandle.walk(this.#root, toVersionPath(name).split('/'), { create: true });
    for (let atMs = Date.now(); ; atMs += 1) {
      const id = new Date(atMs).toISOString().slice(0, -1).replaceAll(/[:.]/gu, '-');
      try {
        await mkdir(versions.at(id));
        await versions.sync();
        return id;
      } catch (error) {
        // The second of two changes in one millisecond gets the next one's name.
        if (!isSystemError(error, 'EEXIST')) throw error;
      }
    }
  }

  async #ids(name: string): Promise<string[]> {
    const entries = await this.#files.list(toVersionPath(name), { limit: filesListed }).catch(unlessMissing);
    const names = entries.filter(({ kind }) => kind === 'folder').map(({ path }) => path.slice(toVersionPath(name).length + 1));
    return names.filter((id) => idPattern.test(id)).toReversed();
  }

  async #prune(name: string): Promise<void> {
    for (const id of (await this.#ids(name)).slice(keptPerSkill)) await this.#remove(toVersionPath(name).split('/'), id);
    const kept = (await this.#files.list(versionsFolder, { limit: filesListed })).filter(({ kind }) => kind === 'folder');
    const oldest = kept.toSorted((left, right) => left.mtimeMs - right.mtimeMs).slice(0, Math.max(0, kept.length - skillsKept));
    for (const { path } of oldest) await this.#remove(versionsFolder.split('/'), path.slice(versionsFolder.length + 1));
  }

  async #remove(parents: readonly string[], name: string): Promise<void> {
    await using parent = await FolderHandle.walk(this.#root, parents);
    await removeTree(parent, name);
  }
}

function toVersionPath(name: string, id?: string): string {
  return id === undefined ? `${versionsFolder}/${name}` : `${versionsFolder}/${name}/${id}`;
}

function readVersionTime(id: string): string {
  return id.replace(idPattern, '$1:$2:$3.$4Z');
}

function unlessMissing(error: unknown): never[] {
  if (error instanceof AppError && error.code === 'not_found') return [];
  throw error;
}
