import type { OwnTool } from '../tool.ts';
import { webFetch } from './web-fetch.ts';
import { webSearch } from './web-search.ts';

export const webTools: readonly OwnTool[] = [webSearch, webFetch];
