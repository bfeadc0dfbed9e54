import { z } from 'zod';
import { ReindexReport, Skill } from '../../tenants/skill.ts';
import { defineRoute } from '../route.ts';

/** GET /api/skills (service interface). */
export const listSkills = defineRoute({
  id: 'listSkills',
  method: 'get',
  path: '/api/skills',
  tag: 'skills',
  summary: 'All skills, from the front matter of each SKILL.md',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'Skills by name.', json: z.array(Skill) } },
  errors: [],
});

/** POST /api/skills/reindex (service interface). */
export const reindexSkills = defineRoute({
  id: 'reindexSkills',
  method: 'post',
  path: '/api/skills/reindex',
  tag: 'skills',
  summary: 'Rebuild the skills index from the files',
  auth: 'key',
  scopes: ['admin'],
  answers: { 200: { description: 'How many were indexed, and which could not be read.', json: ReindexReport } },
  errors: [],
});
