import { FrontMatterError, parseFrontMatter, stringifyFrontMatter } from '@concierge/tenant';
import { z } from 'zod';
import { ToolError } from '../tool.ts';

/** What a caller gives of a skill: the whole text, or some of its parts. */
export interface SkillParts {
  readonly content: string | undefined;
  readonly description: string | undefined;
  /** Empty: none. */
  readonly trigger: string | undefined;
  readonly body: string | undefined;
}

const Fields = z.record(z.string(), z.unknown());

/** SKILL.md of a new skill. @throws ToolError when parts are missing */
export function newSkill(name: string, { content, description, trigger, body }: SkillParts): string {
  if (content !== undefined) return content;
  if (description === undefined || body === undefined || body.trim() === '')
    throw new ToolError('A new skill needs description and body, or content: the whole SKILL.md.');
  return stringifyFrontMatter({ name, description, trigger: trigger === '' ? undefined : trigger }, `\n${body.trim()}\n`);
}

/**
 * SKILL.md with these parts changed; the other fields stay, comments in the front matter do not.
 * @throws ToolError when it has no usable one
 */
export function changedSkill(text: string, { content, description, trigger, body }: SkillParts): string {
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
