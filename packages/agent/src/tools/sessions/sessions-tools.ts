import type { OwnTool } from '../tool.ts';
import { sessionHistory } from './session-history.ts';
import { sessionsList } from './sessions-list.ts';
import { status } from './status.ts';
import { subagents } from './subagents.ts';

export const sessionsTools: readonly OwnTool[] = [sessionsList, sessionHistory, status, subagents];
