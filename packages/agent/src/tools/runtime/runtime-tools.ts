import type { Tool } from '../tool.ts';

export const runtimeTools: readonly Tool[] = [];
