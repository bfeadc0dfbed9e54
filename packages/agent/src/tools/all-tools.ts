import { cron } from './automation/cron.ts';
import { renderTemplate } from './documents/render-template.ts';
import { viewAttachment } from './documents/view-attachment.ts';
import { edit, listFiles, read, write } from './files/file-tools.ts';
import { searchFiles } from './files/search-files.ts';
import { memoryForget, memoryGet, memoryWrite } from './memory/memory-notes.ts';
import { memorySearch } from './memory/memory-search.ts';
import { contacts } from './messaging/contacts.ts';
import { handoff } from './messaging/handoff.ts';
import { channels, message, reply } from './messaging/message.ts';
import { processTool } from './runtime/process.ts';
import { bash, exec } from './runtime/run-command.ts';
import { sessionHistory, sessionsList } from './sessions/session-history.ts';
import { status } from './sessions/status.ts';
import { subagents } from './sessions/subagents.ts';
import { loadSkill } from './skills/load-skill.ts';
import { manageSkill } from './skills/manage-skill.ts';
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
