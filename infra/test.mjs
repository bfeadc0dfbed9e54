// `npm test [-- unit|integration|contract|e2e|chaos|deploy] [what Jest takes]`: checks and tests, or the tests of some
// kinds.
import { bootstrap, root } from './bootstrap.mjs';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  const { runEverything } = await import('./test/run-everything.mjs');
  process.exitCode = await runEverything(process.argv.slice(2));
});
