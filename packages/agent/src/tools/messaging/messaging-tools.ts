import type { Tool } from '../tool.ts';

export const messagingTools: readonly Tool[] = [];
