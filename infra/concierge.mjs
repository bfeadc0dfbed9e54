#!/usr/bin/env node
// The operators' command line (`npx concierge …`), from source under Node 24.
import { join } from 'node:path';
import { bootstrap, root } from './bootstrap.mjs';

await bootstrap(import.meta.url, async () => {
  const { runTypeScript } = await import('./run-typescript.mjs');
  // The same folder that `npm start` uses, from wherever this is called.
  process.env.DATA_DIR ||= join(root, 'data');
  await runTypeScript('packages/cli/src/main.ts');
});
