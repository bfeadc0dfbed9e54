// `npm run docs`: writes the pages that are made from code, and llms.txt. A test fails when one of them is behind.
import { bootstrap, root } from './bootstrap.mjs';
import { writeLlms } from './docs/llms.mjs';
import { runTypeScript } from './run-typescript.mjs';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  await runTypeScript('packages/agent/src/tools-page-main.ts');
  await runTypeScript('packages/runtime/src/metrics/metrics-page-main.ts');
  writeLlms();
});
