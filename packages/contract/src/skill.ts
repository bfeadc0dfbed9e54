import { z } from 'zod';
import { limits } from './limits.ts';

/** Agent Skills: the name is the directory's. */
export const skillNamePattern = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/u;
export const SkillFrontMatter = z.looseObject({
  name: z.string().regex(skillNamePattern),
  description: z.string().min(1).max(limits.skillDescriptionMaxCharacters),
  trigger: z.string().optional(),
  metadata: z.looseObject({ trigger: z.string().optional() }).optional(),
});

export const Skill = z.object({ name: z.string(), description: z.string(), trigger: z.string(), path: z.string() }).meta({ id: 'Skill' });
export type Skill = z.infer<typeof Skill>;

export const ReindexReport = z
  .object({ indexed: z.int().nonnegative(), invalid: z.array(z.object({ path: z.string(), reason: z.string() })) })
  .meta({ id: 'ReindexReport' });
export type ReindexReport = z.infer<typeof ReindexReport>;
