// `npm run docs`: writes the pages that are made from code. A test fails when one of them differs from the code.
import { bootstrap, root } from './bootstrap.mjs';
import { runTypeScript } from './run-typescript.mjs';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  await runTypeScript('packages/agent/src/tools-page-main.ts');
  await runTypeScript('packages/runtime/src/metrics/metrics-page-main.ts');
});
