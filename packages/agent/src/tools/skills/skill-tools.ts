import { AppError } from '@concierge/contract';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import { replaceOnce } from '../replace-once.ts';
import type { ToolContext } from '../tool-context.ts';
import { FrontMatterError, parseFrontMatter, stringifyFrontMatter } from '@concierge/tenant';
import { fitsOnPage, pageArguments, buildPage } from '../files/file-tools.ts';

export const loadSkill = defineTool({
  name: 'load_skill',
  domain: 'skills',
  cs: 'full',
  description:
    'Loads a skill by its name from the list of skills: the full procedure to follow, and which further files belong to it. Call it before you do what the skill describes, and load a further file only when the procedure sends you there. What is long comes in pages with numbered lines (the numbers are not part of the text): continue with offset.',
  schema: z.strictObject({
    name: z.string().min(1).describe('Name of the skill.'),
    file: z
      .string()
      .min(1)
      .optional()
      .describe('A further file of the skill, as in "references/prices.md". Default: the procedure itself.'),
    ...pageArguments,
  }),
  sideEffect: 'none',
  run: async ({ name, file, ...page }, { skills, access }) => {
    try {
      if (file !== undefined) return paged(await skills.readFile(name, file), { name: file, ...page });
      const { body, files } = await skills.load(name);
      return paged(body.trim(), { name, ...page }) + fileList(files);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.code === 'not_found') throw new ToolError(await whatThereIs(skills, name, file), { cause: error });
      if (error.code === 'unsupported_media_type') throw new ToolError(binaryNote(name, file, access), { cause: error });
      throw error;
    }
  },
});

/** Short texts have no line numbers: most skills are short, and numbers would disturb copying. */
function paged(text: string, page: { name: string; offset?: number | undefined; limit?: number | undefined }): string {
  if (text === '') return `${page.name} is empty.`;
  if (page.offset === undefined && page.limit === undefined && fitsOnPage(text)) return text;
  return buildPage(text, { ...page, offset: page.offset, limit: page.limit });
}

function fileList(files: readonly string[]): string {
  return files.length === 0 ? '' : `\n\nFurther files of this skill, to be loaded with file: ${files.join(', ')}`;
}

function binaryNote(name: string, file: string | undefined, access: ToolContext['access']): string {
  const way = access === 'admin' ? ` It lies at skills/${name}/${file ?? ''}, for use by its path in a command.` : '';
  return `${file ?? 'SKILL.md'} of the skill ${name} is not text and cannot be shown.${way}`;
}

async function whatThereIs(skills: ToolContext['skills'], name: string, file: string | undefined): Promise<string> {
  const names = (await skills.list()).map((skill) => skill.name);
  if (file !== undefined && names.includes(name)) {
    const { files } = await skills.load(name);
    return `The skill ${name} has no file ${file}.${files.length === 0 ? ' It has none but its procedure.' : ` It has: ${files.join(', ')}.`}`;
  }
  return `There is no skill "${name}".${names.length === 0 ? ' There are none yet.' : ` There are: ${names.join(', ')}.`}`;
}

const actions = ['list', 'create', 'update', 'delete', 'versions', 'restore', 'write_file', 'remove_file'] as const;

const EXAMPLE = `SKILL.md looks like this:
---
name: refund-request
description: Checks and answers a request for a refund. Use when somebody wants their money back.
trigger: refund
---
# Refund request

1. Ask for the order number.`;

const input = z.strictObject({
  action: z.enum(actions).describe('What to do.'),
  name: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Name of the skill: lower-case letters, digits and hyphens, as in "refund-request". For every action but list.'),
  description: z.string().optional().describe('create, update: what the skill does and when to use it, in 1 to 1024 characters.'),
  trigger: z.string().optional().describe('create, update: words that call for the skill. Empty text takes it away.'),
  body: z.string().optional().describe('create, update: the procedure in Markdown, without front matter.'),
  content: z
    .string()
    .optional()
    .describe('create, update: the whole SKILL.md, front matter included, in place of description, trigger and body.'),
  find: z.string().min(1).optional().describe('update: a passage that is in SKILL.md exactly once, front matter included, to be replaced.'),
  replace: z.string().optional().describe('update: what stands in place of find.'),
  file: z
    .string()
    .min(1)
    .optional()
    .describe(
      'write_file, remove_file: path inside the skill, as in "references/prices.md" (by custom under references/, scripts/ or assets/).',
    ),
  text: z.string().optional().describe('write_file: the whole content of the file.'),
  version: z.string().min(1).max(100).optional().describe('restore: a version, as versions lists it.'),
});
type Input = z.output<typeof input>;
type SkillEditing = NonNullable<ToolContext['skillEditor']>;

export const manageSkill = defineTool({
  name: 'manage_skill',
  domain: 'skills',
  cs: 'never',
  description: `Keeps the skills of this workspace: procedures that agents load when they are needed. Make one when the owner explains how something is to be done and it will be done again; for a single fact use memory_write.
Actions: list (all of them, and which cannot be used and why), create, update, delete, versions and restore (what a change replaced is kept, the last 20 per skill), write_file and remove_file for files that a skill brings along.
Changes are checked against the rules of Agent Skills and hold from the next turn on. Keep SKILL.md under 500 lines; move details to files that it names. To follow a skill use load_skill.`,
  schema: input,
  sideEffect: 'writes',
  run: async (given, { skills, skillEditor }) => {
    if (skillEditor === undefined) throw new ToolError('This agent cannot change skills.');
    try {
      return await runAction(given, skills, skillEditor);
    } catch (error) {
      if (error instanceof AppError) throw new ToolError(explain(error, given), { cause: error });
      throw error;
    }
  },
});

async function runAction(given: Input, skills: ToolContext['skills'], editor: SkillEditing): Promise<string> {
  switch (given.action) {
    case 'list':
      return listing(skills);
    case 'create':
      return saved('Created', await editor.create(needed(given, 'name'), newSkill(needed(given, 'name'), readSkillParts(given))));
    case 'update':
      return saved('Changed', await editor.update(needed(given, 'name'), readUpdate(given)));
    case 'delete':
      return deleted(needed(given, 'name'), await editor.remove(needed(given, 'name')));
    case 'versions':
      return versionList(needed(given, 'name'), await editor.versions(needed(given, 'name')));
    case 'restore': {
      const files = await editor.restore(needed(given, 'name'), needed(given, 'version'));
      return `Restored ${files.join(', ')} of ${needed(given, 'name')}.`;
    }
    case 'write_file': {
      const { created } = await editor.writeFile(needed(given, 'name'), needed(given, 'file'), needed(given, 'text'));
      return `${created ? 'Added' : 'Replaced'} ${needed(given, 'file')}. Name it in the skill's procedure, or no agent will look into it.`;
    }
    case 'remove_file':
      await editor.removeFile(needed(given, 'name'), needed(given, 'file'));
      return `Removed ${needed(given, 'file')} from ${needed(given, 'name')}.`;
  }
}

/** @throws ToolError when the argument is missing */
function needed(given: Input, argument: 'name' | 'file' | 'text' | 'version'): string {
  const value = given[argument];
  if (value === undefined) throw new ToolError(`The action ${given.action} needs ${argument}.`);
  return value;
}

function readSkillParts({ content, description, trigger, body }: Input): SkillParts {
  if (content !== undefined && (description ?? trigger ?? body) !== undefined)
    throw new ToolError('Give either content, the whole SKILL.md, or description, trigger and body.');
  return { content, description, trigger, body };
}

function readUpdate(given: Input): (text: string) => string {
  const parts = readSkillParts(given);
  const { find, replace } = given;
  const hasParts = Object.values(parts).some((part) => part !== undefined);
  if (find === undefined) {
    if (!hasParts) throw new ToolError('The action update needs content, or description, trigger or body, or find and replace.');
    return (text) => changedSkill(text, parts);
  }
  if (hasParts || replace === undefined) throw new ToolError('An update by find takes replace and nothing else.');
  return (text) => replaceOnce(text, { find, replace, path: 'SKILL.md' }).text;
}

async function listing(skills: ToolContext['skills']): Promise<string> {
  const { valid, invalid } = await skills.scan();
  const lines = valid.map(({ name, description, trigger }) => `- ${name}: ${description}${trigger === '' ? '' : ` (trigger: ${trigger})`}`);
  const bad = invalid.map(({ path, reason }) => `- ${path}: ${reason}`);
  const head = lines.length === 0 ? 'There are no skills yet.' : `Skills:\n${lines.join('\n')}`;
  return bad.length === 0 ? head : `${head}\n\nCannot be used until they are put right:\n${bad.join('\n')}`;
}

function saved(verb: string, { skill, unknownFields }: Awaited<ReturnType<SkillEditing['create']>>): string {
  const note = unknownFields.length === 0 ? '' : `\nNothing here reads these fields of the front matter: ${unknownFields.join(', ')}.`;
  return `${verb} ${skill.path}. Agents know it from their next turn on.${note}`;
}

function deleted(name: string, version: string): string {
  return `Deleted ${name} with all its files. To bring it back: action restore, version ${version}.`;
}

function versionList(name: string, versions: Awaited<ReturnType<SkillEditing['versions']>>): string {
  if (versions.length === 0) return `There is no earlier version of ${name}.`;
  const lines = versions.map(({ id, at, files }) => `- ${id}: until ${at}, ${files.join(', ')}`);
  return `Earlier versions of ${name}, newest first. Each holds the files that were changed or removed at that time, as they were before:\n${lines.join('\n')}`;
}

function explain(error: AppError, { action, name }: Input): string {
  if (error.code === 'conflict' && action === 'create') return `${error.message} Use update to change it, or another name.`;
  if (error.code !== 'invalid_request' || (action !== 'create' && action !== 'update')) return error.message;
  return `The skill ${name ?? ''} was not saved:\n${error.message}\n\n${EXAMPLE}`;
}

/** What a caller gives of a skill: the whole text, or some of its parts. */
interface SkillParts {
  readonly content: string | undefined;
  readonly description: string | undefined;
  /** Empty: none. */
  readonly trigger: string | undefined;
  readonly body: string | undefined;
}

const Fields = z.record(z.string(), z.unknown());

/** SKILL.md of a new skill. @throws ToolError when parts are missing */
function newSkill(name: string, { content, description, trigger, body }: SkillParts): string {
  if (content !== undefined) return content;
  if (description === undefined || body === undefined || body.trim() === '')
    throw new ToolError('A new skill needs description and body, or content: the whole SKILL.md.');
  return stringifyFrontMatter({ name, description, trigger: trigger === '' ? undefined : trigger }, `\n${body.trim()}\n`);
}

/**
 * SKILL.md with these parts changed; the other fields stay, comments in the front matter do not.
 * @throws ToolError when it has no usable one
 */
function changedSkill(text: string, { content, description, trigger, body }: SkillParts): string {
  if (content !== undefined) return content;
  const before = readParts(text);
  const fields = { ...before.fields, ...(description !== undefined && { description }) };
  if (trigger !== undefined) setTrigger(fields, trigger);
  return stringifyFrontMatter(fields, `\n${(body ?? before.body).trim()}\n`);
}

/** Where it was: at the top or under metadata. */
function setTrigger(fields: Record<string, unknown>, trigger: string): void {
  const metadata = Fields.safeParse(fields['metadata']);
  if (fields['trigger'] === undefined && metadata.success && 'trigger' in metadata.data) {
    fields['metadata'] = Object.fromEntries(
      Object.entries({ ...metadata.data, trigger }).filter(([key]) => key !== 'trigger' || trigger !== ''),
    );
    return;
  }
  fields['trigger'] = trigger === '' ? undefined : trigger;
}

function readParts(text: string): { fields: Record<string, unknown>; body: string } {
  try {
    const { data, body } = parseFrontMatter(text);
    return { fields: Fields.parse(data), body };
  } catch (error) {
    if (!(error instanceof FrontMatterError) && !(error instanceof z.ZodError)) throw error;
    throw new ToolError('SKILL.md has no front matter that can be changed field by field. Give content: the whole SKILL.md.', {
      cause: error,
    });
  }
}
