import { cron } from './automation/cron.ts';
import { renderTemplate, viewAttachment } from './documents/document-tools.ts';
import { edit, listFiles, read, write } from './files/file-tools.ts';
import { searchFiles } from './files/search-files.ts';
import { memoryForget, memoryGet, memoryWrite, memorySearch } from './memory/memory-notes.ts';
import { contacts } from './messaging/contacts.ts';
import { handoff, channels, message, reply } from './messaging/message-tools.ts';
import { processTool, bash, exec } from './runtime/command-tools.ts';
import { sessionHistory, sessionsList, status } from './sessions/session-tools.ts';
import { subagents } from './sessions/subagents.ts';
import { loadSkill, manageSkill } from './skills/skill-tools.ts';
import type { BuiltInTool } from './tool.ts';
import { webFetch, webSearch } from './web/web.ts';

/** Every tool there is, in the order in which models see them. Who has which is part of each definition. */
export const allTools: readonly BuiltInTool[] = [
  read,
  write,
  edit,
  listFiles,
  searchFiles,
  bash,
  exec,
  processTool,
  webSearch,
  webFetch,
  memorySearch,
  memoryGet,
  memoryWrite,
  memoryForget,
  loadSkill,
  manageSkill,
  sessionsList,
  sessionHistory,
  status,
  subagents,
  message,
  reply,
  channels,
  contacts,
  handoff,
  cron,
  viewAttachment,
  renderTemplate,
];
