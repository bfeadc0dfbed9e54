import type { OwnTool } from '../tool.ts';
import { memoryForget } from './memory-forget.ts';
import { memoryGet } from './memory-get.ts';
import { memorySearch } from './memory-search.ts';
import { memoryWrite } from './memory-write.ts';

export const memoryTools: readonly OwnTool[] = [memorySearch, memoryGet, memoryWrite, memoryForget];
