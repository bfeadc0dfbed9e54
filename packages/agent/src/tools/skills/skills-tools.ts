import type { OwnTool } from '../tool.ts';
import { loadSkill } from './load-skill.ts';
import { manageSkill } from './manage-skill.ts';

export const skillsTools: readonly OwnTool[] = [loadSkill, manageSkill];
