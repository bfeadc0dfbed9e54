import type { OwnTool } from '../tool.ts';
import { memoryGet } from './memory-get.ts';
import { memoryWrite } from './memory-write.ts';

export const memoryTools: readonly OwnTool[] = [memoryGet, memoryWrite];
