// `npm run format`: puts every file into the house's format.
import { spawnSync } from 'node:child_process';
import { bootstrap, root } from './bootstrap.mjs';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  process.exitCode = spawnSync('oxfmt', ['.'], { stdio: 'inherit' }).status ?? 1;
});
