import type { OwnTool } from '../tool.ts';

export const runtimeTools: readonly OwnTool[] = [];
