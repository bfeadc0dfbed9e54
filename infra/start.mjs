#!/usr/bin/env node
// `npm start`: everything on this machine, from source, with embedded defaults.
import { bootstrap, root } from './bootstrap.mjs';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  const { startSystem } = await import('./start/system.mjs');
  await startSystem();
});
