import { AppError } from '@concierge/contract';
import { z } from 'zod';
import { fitsOnPage, pageArguments, pageOf } from '../page-lines.ts';
import { defineTool, ToolError } from '../tool.ts';
import type { ToolContext } from '../tool-context.ts';

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
  return pageOf(text, { ...page, offset: page.offset, limit: page.limit });
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
