import { edit } from './edit.ts';
import { listFiles } from './list-files.ts';
import { loadSkill } from './load-skill.ts';
import { memoryGet } from './memory-get.ts';
import { memoryWrite } from './memory-write.ts';
import { read } from './read.ts';
import { searchFiles } from './search-files.ts';
import { sessionHistory } from './session-history.ts';
import { sessionsList } from './sessions-list.ts';
import { status } from './status.ts';
import type { Tool } from './tool.ts';
import { write } from './write.ts';

/** Every tool there is, in the order in which models see them; which of them an agent has is decided by its `ToolBox`. */
export const allTools: readonly Tool[] = [
  read,
  write,
  edit,
  listFiles,
  searchFiles,
  memoryGet,
  memoryWrite,
  loadSkill,
  sessionsList,
  sessionHistory,
  status,
];
