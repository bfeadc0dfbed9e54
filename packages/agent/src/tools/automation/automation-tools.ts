import type { Tool } from '../tool.ts';
import { cron } from './cron.ts';

export const automationTools: readonly Tool[] = [cron];
