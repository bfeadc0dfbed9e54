import { automationTools } from './automation/automation-tools.ts';
import { documentsTools } from './documents/documents-tools.ts';
import { filesTools } from './files/files-tools.ts';
import { memoryTools } from './memory/memory-tools.ts';
import { messagingTools } from './messaging/messaging-tools.ts';
import { runtimeTools } from './runtime/runtime-tools.ts';
import { sessionsTools } from './sessions/sessions-tools.ts';
import { skillsTools } from './skills/skills-tools.ts';
import type { OwnTool } from './tool.ts';
import { webTools } from './web/web-tools.ts';

/** Every tool there is, by domain, in the order in which models see them; which of them an agent has is decided by its `ToolBox`. */
export const allTools: readonly OwnTool[] = [
  ...filesTools,
  ...runtimeTools,
  ...webTools,
  ...memoryTools,
  ...skillsTools,
  ...sessionsTools,
  ...messagingTools,
  ...automationTools,
  ...documentsTools,
];
