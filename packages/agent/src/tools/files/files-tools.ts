import type { OwnTool } from '../tool.ts';
import { edit } from './edit.ts';
import { listFiles } from './list-files.ts';
import { read } from './read.ts';
import { searchFiles } from './search-files.ts';
import { write } from './write.ts';

export const filesTools: readonly OwnTool[] = [read, write, edit, listFiles, searchFiles];
