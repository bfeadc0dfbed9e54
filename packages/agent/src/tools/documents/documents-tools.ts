import type { Tool } from '../tool.ts';

export const documentsTools: readonly Tool[] = [];
