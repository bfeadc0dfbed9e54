#!/usr/bin/env node
// `npm run dev [-- --inspect SERVICE]`: as `npm start`, and what changes is restarted.
import { bootstrap, root } from './bootstrap.mjs';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  const { startDevelopment } = await import('./dev/start-development.mjs');
  await startDevelopment(process.argv.slice(2));
});
