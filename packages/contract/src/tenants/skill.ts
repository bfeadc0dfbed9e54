import { z } from 'zod';
import { limits } from '../limits.ts';

/** Agent Skills: the name is the directory's. */
export const skillNamePattern = /^(?=.{1,64}$)[a-z0-9]+(?:-[a-z0-9]+)*$/u;
export const skillNameRule = `must be lower-case letters a-z, digits and single inner hyphens, at most ${String(limits.skillNameMaxCharacters)}, as in "refund-request"`;

const descriptionRule = `must be text of 1 to ${String(limits.skillDescriptionMaxCharacters)} characters that says what the skill does and when to use it`;
const compatibilityRule = `must be text of 1 to ${String(limits.skillCompatibilityMaxCharacters)} characters`;
const allowedToolsRule = 'must be names of tools, as text with spaces between or as a list';

/**
 * The front matter of SKILL.md: the public Agent Skills format, and `trigger`. Fields of other clients are kept and not
 * read.
 */
export const SkillFrontMatter = z.looseObject({
  name: z.string(skillNameRule).regex(skillNamePattern, skillNameRule),
  description: z.string(descriptionRule).trim().min(1, descriptionRule).max(limits.skillDescriptionMaxCharacters, descriptionRule),
  trigger: z.string('must be text: words that call for the skill').optional(),
  license: z.string('must be text: the name of a licence or of a file of the skill').optional(),
  compatibility: z
    .string(compatibilityRule)
    .min(1, compatibilityRule)
    .max(limits.skillCompatibilityMaxCharacters, compatibilityRule)
    .optional(),
  metadata: z.looseObject({ trigger: z.string('must be text').optional() }, 'must be a map of names to texts').optional(),
  'allowed-tools': z.union([z.string(), z.array(z.string())], allowedToolsRule).optional(),
});
export const skillFields: ReadonlySet<string> = new Set(Object.keys(SkillFrontMatter.shape));

export const Skill = z.object({ name: z.string(), description: z.string(), trigger: z.string(), path: z.string() }).meta({ id: 'Skill' });
export type Skill = z.infer<typeof Skill>;

export const ReindexReport = z
  .object({ indexed: z.int().nonnegative(), invalid: z.array(z.object({ path: z.string(), reason: z.string() })) })
  .meta({ id: 'ReindexReport' });
export type ReindexReport = z.infer<typeof ReindexReport>;
