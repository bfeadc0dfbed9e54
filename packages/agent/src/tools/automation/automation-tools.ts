import type { OwnTool } from '../tool.ts';
import { cron } from './cron.ts';

export const automationTools: readonly OwnTool[] = [cron];
