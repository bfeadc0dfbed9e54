import type { Tool } from '../tool.ts';
import { bash } from './bash.ts';
import { exec } from './exec.ts';
import { processTool } from './process.ts';

export const runtimeTools: readonly Tool[] = [bash, exec, processTool];
