import type { Tool } from '../tool.ts';

export const automationTools: readonly Tool[] = [];
