// `npm run reading [-- --files]`: what one turn runs through, measured, and whether docs/reading.md still names it.
import { bootstrap, root } from './bootstrap.mjs';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  const { reportReading } = await import('./reading/report-reading.mjs');
  process.exitCode = await reportReading(process.argv.slice(2));
});
