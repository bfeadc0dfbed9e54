// `npm run bench`: packages/acceptance/bench/main.ts, from source.
import { bootstrap, root } from './bootstrap.mjs';
import { runTypeScript } from './run-typescript.mjs';
import { buildUi } from './start/ui-build.mjs';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  // Nothing is done where they are as their sources are.
  await buildUi(process.env);
  await runTypeScript('packages/acceptance/bench/main.ts');
});
