import { join } from 'node:path';
import {
  AppError,
  invalidFields,
  isSharedPath,
  skillFields,
  SkillFrontMatter,
  skillNamePattern,
  skillNameRule,
  toFieldProblems,
  type FileProblem,
  type Skill,
} from '@concierge/contract';
import { FolderHandle, StatCache } from '@concierge/files';
import { describeUnreadable, describeUnusable, type BrokenFile } from '../agents/agents.ts';
import { parseFrontMatter, FrontMatterError } from '../agents/front-matter.ts';
import { findPathProblem, type TenantFiles } from '../files/tenant-files.ts';

export const skillFileMaxBytes = 256 * 1024;
const skillsMax = 1000;
export const bundledFilesMax = 200;
/** Files and the folders that they are in: no more are looked at for the list of files. */
const bundledEntriesMax = 1000;

export interface InvalidSkill extends BrokenFile {
  readonly path: string;
}

export interface SkillScan {
  /** By name. */
  readonly valid: readonly Skill[];
  readonly invalid: readonly InvalidSkill[];
}

export interface LoadedSkill {
  readonly skill: Skill;
  /** What follows the front matter. */
  readonly body: string;
  /** Other files of the skill, relative to its folder, for `readFile`; none that begins with a dot. */
  readonly files: readonly string[];
}

type ScannedSkill = { readonly skill: Skill } | BrokenFile;

/**
 * skills/<name>/SKILL.md. Lists come from the files, not from the index: front matter is parsed once per change of a
 * file, and a skill that was added is in the next turn's prompt without a restart. The index's copy is for listing
 * skills in SQL.
 */
export class Skills {
  readonly #root: string;
  readonly #files: TenantFiles;
  readonly #names = new StatCache<string[]>(1);
  readonly #scanned = new StatCache<ScannedSkill>(skillsMax);

  /** `root`: the tenant's folder. */
  constructor(root: string, files: TenantFiles) {
    this.#root = root;
    this.#files = files;
  }

  /** Skills by name; unusable ones are left out. */
  async list(): Promise<readonly Skill[]> {
    return (await this.scan()).valid;
  }

  /** As the files are now: one `lstat` per skill. */
  async scan(): Promise<SkillScan> {
    const valid: Skill[] = [];
    const invalid: InvalidSkill[] = [];
    for (const name of await this.#folderNames()) {
      const path = `skills/${name}/${skillFileName}`;
      const scanned = await this.#scanned.get(join(this.#root, path), async () => this.#read(name));
      if (scanned === undefined) invalid.push({ path, ...missing });
      else if ('skill' in scanned) valid.push(scanned.skill);
      else invalid.push({ path, ...scanned });
    }
    return { valid, invalid };
  }

  /**
   * The whole skill, for the `load_skill` tool.
   * @throws AppError not_found, invalid_request when its front matter is wrong
   */
  async load(name: string): Promise<LoadedSkill> {
    const text = await this.#text(name);
    const skill = await this.#read(name);
    if ('reason' in skill) throw new AppError('invalid_request', `The skill ${name} cannot be used: ${skill.reason}.`);
    const prefix = `skills/${name}/`;
    // Left out before they are counted: a `.git` comes first, and has more files than any skill.
    const isHidden = (path: string): boolean => !isSharedPath(path);
    const entries = await this.#files.list(`skills/${name}`, { recursive: true, limit: bundledEntriesMax, isHidden });
    const files = entries
      .filter((entry) => entry.kind === 'file' && entry.path !== skill.skill.path)
      .slice(0, bundledFilesMax)
      .map((entry) => entry.path.slice(prefix.length));
    return { skill: skill.skill, body: parseFrontMatter(text).body, files };
  }

  /**
   * A file that the skill brings along. What begins with a dot is not there: skills are read by customers' agents, too
   * (decision 0010).
   * @throws AppError not_found, invalid_request, too_large, unsupported_media_type
   */
  async readFile(name: string, file: string): Promise<string> {
    assertSkillName(name);
    const path = `skills/${name}/${file}`;
    // A path that leads out of the folder begins with dots, too: that is refused as what it is.
    if (!isSharedPath(path) && findPathProblem(path) === undefined)
      throw new AppError('not_found', `The skill ${name} has no file ${file}.`);
    return (await this.#files.readText(path)).text;
  }

  /** Folders only: a README beside them is not an error. */
  async #folderNames(): Promise<string[]> {
    const names = await this.#names.get(join(this.#root, 'skills'), async () => {
      try {
        await using folder = await FolderHandle.walk(this.#root, ['skills']);
        const folders: string[] = [];
        for (const name of (await folder.names()).toSorted()) {
          if ((await folder.stat(name))?.isDirectory() === true && !name.startsWith('.')) folders.push(name);
        }
        return folders.slice(0, skillsMax);
      } catch (error) {
        if (error instanceof AppError) return [];
        throw error;
      }
    });
    return names ?? [];
  }

  async #text(name: string): Promise<string> {
    assertSkillName(name);
    return (await this.#files.readText(`skills/${name}/${skillFileName}`, { maxBytes: skillFileMaxBytes })).text;
  }

  async #read(name: string): Promise<ScannedSkill> {
    try {
      const read = readSkillText(name, skillNamePattern.test(name) ? await this.#text(name) : '');
      return 'skill' in read ? { skill: read.skill } : { reason: read.reason, problems: read.problems };
    } catch (error) {
      if (error instanceof AppError) return describeUnreadable(error);
      throw error;
    }
  }
}

/** @throws AppError not_found */
function assertSkillName(name: string): void {
  if (!skillNamePattern.test(name)) throw new AppError('not_found', 'There is no such skill.');
}

export const skillFileName = 'SKILL.md';
const missing = describeUnusable({ message: `has no ${skillFileName}`, code: 'skill_file_missing', params: {} });

/** The content of a SKILL.md, or everything that is wrong with it, to be shown to the tenant. */
type ReadSkill = { readonly skill: Skill; readonly body: string; readonly unknownFields: readonly string[] } | BrokenFile;

/** The text of skills/<name>/SKILL.md by the rules of Agent Skills. */
export function readSkillText(name: string, text: string): ReadSkill {
  if (!skillNamePattern.test(name))
    return describeUnusable({ message: `the folder name ${skillNameRule}`, code: 'skill_folder_name', params: {} });
  try {
    return readParts(name, parseFrontMatter(text));
  } catch (error) {
    if (error instanceof FrontMatterError) return describeUnusable(error.problem);
    throw error;
  }
}

function readParts(name: string, { data, body }: ReturnType<typeof parseFrontMatter>): ReadSkill {
  const parsed = SkillFrontMatter.safeParse(data);
  if (!parsed.success) {
    const fields = invalidFields(parsed.error).map(({ path, message }) => [path, message].filter((part) => part !== '').join(' '));
    const problems = toFieldProblems(parsed.error).map((problem, index): FileProblem => {
      return { ...problem, message: `front matter: ${fields[index] ?? 'cannot be used'}` };
    });
    return { reason: problems.map(({ message }) => message).join('; '), problems };
  }
  const { name: ownName, description, trigger, metadata } = parsed.data;
  if (ownName !== name) {
    const message = `front matter: the name is ${ownName}, the folder is ${name}`;
    return describeUnusable({ message, code: 'skill_name_differs', params: { name: ownName, folder: name } });
  }
  const skill: Skill = {
    name,
    description: oneLine(description),
    trigger: oneLine(trigger ?? metadata?.trigger ?? ''),
    path: `skills/${name}/${skillFileName}`,
  };
  return { skill, body, unknownFields: Object.keys(parsed.data).filter((field) => !skillFields.has(field)) };
}

/** Descriptions stand in the prompt, one line each. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').trim();
}
