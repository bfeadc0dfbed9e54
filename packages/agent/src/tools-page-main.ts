import { writeFile } from 'node:fs/promises';
import { toolsPage } from './tools-page.ts';
import { allTools } from './tools/all-tools.ts';

await writeFile(new URL('../../../docs/tools.md', import.meta.url), toolsPage(allTools));
