import { mkdir, rename } from 'node:fs/promises';
import { AppError, skillNamePattern, skillNameRule, type Skill } from '@concierge/contract';
import { assertNoDuplicate, foldName, FolderHandle, temporaryName, writePlainFile } from '@concierge/files';
import { KeyedMutex } from '@concierge/runtime';
import { bundledFilesMax, skillFileMaxBytes, readSkillText, skillFileName } from './skills.ts';
import { SkillVersions, type SkillVersion } from './skill-versions.ts';
import { decodeText, type TenantFiles } from '../files/tenant-files.ts';

export interface SkillEditorOptions {
  /** The tenant's folder. */
  readonly root: string;
  readonly files: TenantFiles;
  /** Called after every change. */
  readonly reindex: () => Promise<void>;
}

export interface SavedSkill {
  readonly skill: Skill;
  /** Fields of the front matter that nothing here reads: other clients' own, or misspelt. */
  readonly unknownFields: readonly string[];
}

/**
 * Changes the tenant's skills by the rules of Agent Skills. What a change replaces is kept as a version first. Each
 * change is one rename: a crash leaves the skill as it was before or after.
 *
 * Errors: invalid_request with everything that is wrong with a skill's text, not_found, conflict when a new skill is
 * there already.
 */
export class SkillEditor {
  readonly #options: SkillEditorOptions;
  readonly #versions: SkillVersions;
  readonly #writers = new KeyedMutex();

  constructor(options: SkillEditorOptions) {
    this.#options = options;
    this.#versions = new SkillVersions(options.root, options.files);
  }

  /** SKILL.md as it is now. */
  async text(name: string): Promise<string> {
    assertSkillName(name);
    return (await this.#options.files.readText(toFilePath(name, skillFileName), { maxBytes: skillFileMaxBytes })).text;
  }

  async create(name: string, text: string): Promise<SavedSkill> {
    const saved = checked(name, text);
    return this.#change(name, async () => {
      await using skills = await FolderHandle.walk(this.#options.root, ['skills'], { create: true });
      if ((await skills.stat(name)) !== undefined) throw new AppError('conflict', `There is a skill ${name} already.`);
      await assertNoDuplicate(skills, name);
      const temporary = temporaryName();
      await mkdir(skills.at(temporary));
      {
        await using folder = await skills.enter(temporary);
        await writePlainFile(folder, skillFileName, text);
      }
      await rename(skills.at(temporary), skills.at(name));
      await skills.sync();
      return saved;
    });
  }

  /** `change` gets SKILL.md and gives the new one; what it throws is thrown. */
  async update(name: string, change: (text: string) => string): Promise<SavedSkill> {
    assertSkillName(name);
    return this.#change(name, async () => {
      const before = await this.text(name);
      const text = change(before);
      const saved = checked(name, text);
      await this.#versions.keep(name, new Map([[skillFileName, Buffer.from(before)]]));
      await this.#options.files.writeText(toFilePath(name, skillFileName), text);
      return saved;
    });
  }

  /** Takes the skill and all its files away; the version that brings them back. */
  async remove(name: string): Promise<string> {
    assertSkillName(name);
    return this.#change(name, async () => this.#versions.takeAway(name));
  }

  /** Adds or replaces a file that the skill brings along. */
  async writeFile(name: string, file: string, text: string): Promise<{ created: boolean }> {
    assertSkillName(name);
    assertBundled(file);
    return this.#change(name, async () => {
      await this.text(name);
      const before = await this.#bytes(name, file);
      if (before === undefined) await this.#assertRoom(name);
      else await this.#versions.keep(name, new Map([[file, before]]));
      return this.#options.files.writeText(toFilePath(name, file), text);
    });
  }

  async removeFile(name: string, file: string): Promise<void> {
    assertSkillName(name);
    assertBundled(file);
    await this.#change(name, async () => {
      const before = await this.#bytes(name, file);
      if (before === undefined) throw new AppError('not_found', `The skill ${name} has no file ${file}.`);
      await this.#versions.keep(name, new Map([[file, before]]));
      await this.#options.files.remove(toFilePath(name, file));
    });
  }

  /** Newest first; those of a deleted skill, too. */
  async versions(name: string): Promise<SkillVersion[]> {
    assertSkillName(name);
    return this.#versions.list(name);
  }

  /** Puts the files of a version back, a deleted skill as it was; what they replace becomes a version itself. */
  async restore(name: string, id: string): Promise<readonly string[]> {
    assertSkillName(name);
    return this.#change(name, async () => {
      const files = await this.#versions.listVersionFiles(name, id);
      if (files.length === 0) throw new AppError('not_found', `The skill ${name} has no version ${id}.`);
      const isThere = (await this.#options.files.stat(`skills/${name}`)) !== undefined;
      if (files.includes(skillFileName)) checked(name, decodeText(await this.#versions.read(name, id, skillFileName)));
      else if (!isThere)
        throw new AppError('invalid_request', `The version ${id} of ${name} is no whole skill: it has no ${skillFileName}.`);
      if (isThere) await this.#putBack(name, id, files);
      else await this.#versions.bringBack(name, id);
      return files;
    });
  }

  async #putBack(name: string, id: string, files: readonly string[]): Promise<void> {
    const replaced = new Map<string, Uint8Array>();
    const wanted = new Map<string, Uint8Array>();
    for (const file of files) {
      wanted.set(file, await this.#versions.read(name, id, file));
      const before = await this.#bytes(name, file);
      if (before !== undefined) replaced.set(file, before);
    }
    if (replaced.size > 0) await this.#versions.keep(name, replaced);
    for (const [file, bytes] of wanted) {
      const parts = toFilePath(name, file).split('/');
      await using folder = await FolderHandle.walk(this.#options.root, parts.slice(0, -1), { create: true });
      await writePlainFile(folder, parts.at(-1) ?? file, bytes);
    }
  }

  async #change<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const result = await this.#writers.run(name, work);
    await this.#options.reindex();
    return result;
  }

  async #bytes(name: string, file: string): Promise<Buffer | undefined> {
    try {
      return (await this.#options.files.readBytes(toFilePath(name, file))).bytes;
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') return undefined;
      throw error;
    }
  }

  async #assertRoom(name: string): Promise<void> {
    const entries = await this.#options.files.list(`skills/${name}`, { recursive: true, limit: bundledFilesMax + 1 });
    if (entries.length >= bundledFilesMax) throw new AppError('too_large', `A skill has at most ${String(bundledFilesMax)} files.`);
  }
}

function toFilePath(name: string, file: string): string {
  return `skills/${name}/${file}`;
}

/** @throws AppError not_found */
function assertSkillName(name: string): void {
  if (!skillNamePattern.test(name)) throw new AppError('not_found', `There is no skill ${JSON.stringify(name)}: a name ${skillNameRule}.`);
}

/** @throws AppError invalid_request */
function assertBundled(file: string): void {
  if (foldName(file) === foldName(skillFileName))
    throw new AppError('invalid_request', `${skillFileName} is the skill itself: change it by an update of the skill.`);
}

/** @throws AppError invalid_request */
function checked(name: string, text: string): SavedSkill {
  if (Buffer.byteLength(text) > skillFileMaxBytes)
    throw new AppError(
      'too_large',
      `${skillFileName} may have at most ${String(skillFileMaxBytes)} bytes: move parts to files of the skill.`,
    );
  const read = readSkillText(name, text);
  if ('skill' in read) return { skill: read.skill, unknownFields: read.unknownFields };
  throw new AppError('invalid_request', read.problems.map(({ message }) => `- ${message}`).join('\n'), {
    errors: read.problems.map(({ message }) => ({ path: skillFileName, message })),
  });
}
