// `npm run check`: types, expressions, lint, format, dead code, architecture, layout.
import { bootstrap, root } from './bootstrap.mjs';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  const { runChecks } = await import('./check/run-checks.mjs');
  const { failed } = await runChecks();
  process.exitCode = failed === 0 ? 0 : 1;
});
