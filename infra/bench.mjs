// `npm run bench`: packages/acceptance/bench/main.ts, from source.
import { bootstrap, root } from './bootstrap.mjs';
import { runTypeScript } from './run-typescript.mjs';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  await runTypeScript('packages/acceptance/bench/main.ts');
});
