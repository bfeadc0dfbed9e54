import type { Tool } from '../tool.ts';
import { memoryGet } from './memory-get.ts';
import { memoryWrite } from './memory-write.ts';

export const memoryTools: readonly Tool[] = [memoryGet, memoryWrite];
