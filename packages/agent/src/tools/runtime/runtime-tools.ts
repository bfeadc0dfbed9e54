import type { OwnTool } from '../tool.ts';
import { bash } from './bash.ts';
import { exec } from './exec.ts';
import { processTool } from './process.ts';

export const runtimeTools: readonly OwnTool[] = [bash, exec, processTool];
