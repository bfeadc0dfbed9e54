import { invalidFields, skillFields, SkillFrontMatter, skillNamePattern, skillNameRule, type Skill } from '@concierge/contract';
import { FrontMatterError, parseFrontMatter } from '../agents/front-matter.ts';

export const skillFileName = 'SKILL.md';

/** The content of a SKILL.md, or everything that is wrong with it, one problem each, to be shown to the tenant. */
export type ReadSkill =
  | { readonly skill: Skill; readonly body: string; readonly unknownFields: readonly string[] }
  | { readonly problems: readonly [string, ...string[]] };

/** The text of skills/<name>/SKILL.md by the rules of Agent Skills. */
export function readSkillText(name: string, text: string): ReadSkill {
  if (!skillNamePattern.test(name)) return { problems: [`the folder name ${skillNameRule}`] };
  try {
    return readParts(name, parseFrontMatter(text));
  } catch (error) {
    if (error instanceof FrontMatterError) return { problems: [error.message] };
    throw error;
  }
}

function readParts(name: string, { data, body }: ReturnType<typeof parseFrontMatter>): ReadSkill {
  const parsed = SkillFrontMatter.safeParse(data);
  if (!parsed.success) {
    const [first = 'front matter: cannot be used', ...rest] = invalidFields(parsed.error).map(
      ({ path, message }) => `front matter: ${[path, message].filter((part) => part !== '').join(' ')}`,
    );
    return { problems: [first, ...rest] };
  }
  const { name: ownName, description, trigger, metadata } = parsed.data;
  if (ownName !== name) return { problems: [`front matter: the name is ${ownName}, the folder is ${name}`] };
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
