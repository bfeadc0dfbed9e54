import type { Tool } from '../tool.ts';
import { loadSkill } from './load-skill.ts';

export const skillsTools: readonly Tool[] = [loadSkill];
