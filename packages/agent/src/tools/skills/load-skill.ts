import { AppError } from '@concierge/contract';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import type { ToolContext } from '../tool-context.ts';

export const loadSkill = defineTool({
  name: 'load_skill',
  description:
    'Loads a skill by its name from the list of skills: the full procedure to follow, and which further files belong to it. Call it before you do what the skill describes.',
  schema: z.strictObject({
    name: z.string().min(1).describe('Name of the skill.'),
    file: z
      .string()
      .min(1)
      .optional()
      .describe('A further file of the skill, as in "references/prices.md". Default: the procedure itself.'),
  }),
  sideEffect: 'none',
  run: async ({ name, file }, { skills }) => {
    try {
      if (file !== undefined) return await skills.readFile(name, file);
      const { body, files } = await skills.load(name);
      return files.length === 0
        ? body.trim()
        : `${body.trim()}\n\nFurther files of this skill, to be loaded with file: ${files.join(', ')}`;
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found')
        throw new ToolError(await whatThereIs(skills, name, file), { cause: error });
      throw error;
    }
  },
});

async function whatThereIs(skills: ToolContext['skills'], name: string, file: string | undefined): Promise<string> {
  const names = (await skills.list()).map((skill) => skill.name);
  if (file !== undefined && names.includes(name)) {
    const { files } = await skills.load(name);
    return `The skill ${name} has no file ${file}.${files.length === 0 ? ' It has none but its procedure.' : ` It has: ${files.join(', ')}.`}`;
  }
  return `There is no skill "${name}".${names.length === 0 ? ' There are none yet.' : ` There are: ${names.join(', ')}.`}`;
}
