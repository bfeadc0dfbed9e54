// `npm run prove -- deploy [rolls]`: the tests of a kind that take long, at their full length. For deploy that is ten
// rolling redeploys under load.
import { bootstrap, root } from './bootstrap.mjs';

const ROLLS = '10';

await bootstrap(import.meta.url, async () => {
  process.chdir(root);
  const [kind, rolls = ROLLS] = process.argv.slice(2);
  if (kind !== 'deploy') {
    process.stderr.write('usage: npm run prove -- deploy [rolls]\n');
    process.exit(1);
  }
  process.env.DEPLOY_ROLLS = rolls;
  const { runEverything } = await import('./test/run-everything.mjs');
  process.exitCode = await runEverything(['deploy']);
});
