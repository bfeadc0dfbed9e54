#!/usr/bin/env node
// The operators' command line (`npx concierge …`), from source under Node 24.
import module from 'node:module';
import { join } from 'node:path';
import { bootstrap, root } from './bootstrap.mjs';
import { loadEnvironmentFile } from './environment-file.mjs';
import { runTypeScript, sourceFlag } from './run-typescript.mjs';

const script = 'packages/cli/src/main.ts';

await bootstrap(
  import.meta.url,
  async () => {
    // The same variables and the same folder that `npm start` uses, from wherever this is called.
    try {
      loadEnvironmentFile();
    } catch (error) {
      process.stderr.write(`concierge: ${error.message}\n`);
      process.exit(1);
    }
    process.env.DATA_DIR ||= join(root, 'data');
    if (!process.execArgv.includes(sourceFlag)) return runTypeScript(script);
    // Started with the flag from an older Node: no third process is needed.
    module.enableCompileCache(process.env.NODE_COMPILE_CACHE ?? join(root, '.cache', 'compile'));
    await import(join(root, script));
  },
  { flags: [sourceFlag] },
);
