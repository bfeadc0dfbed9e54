// Compiles everything for images, where nothing runs from source: JavaScript in each dist/, with what the compiler
// leaves aside.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bootstrap, root } from './bootstrap.mjs';
import { hashSources } from './build-stamp.mjs';

const compiled = /\.tsx?$/u;

/** Lua scripts and other files that the code reads beside itself. */
function copyAssets() {
  for (const group of ['packages', 'services']) {
    for (const name of readdirSync(join(root, group))) {
      const [source, target] = [join(root, group, name, 'src'), join(root, group, name, 'dist')];
      if (existsSync(source)) cpSync(source, target, { recursive: true, filter: (path) => !compiled.test(path) });
    }
  }
}

/** Tells one build from another in logs, `/livez` and `concierge --version`; the same sources give the same. */
async function writeBuildStamp() {
  const sources = ['packages', 'services'].flatMap((group) => readdirSync(join(root, group)).map((name) => join(root, group, name, 'src')));
  const hash = await hashSources(root, [...sources.filter((folder) => existsSync(folder)), join(root, 'pnpm-lock.yaml')]);
  writeFileSync(join(root, 'packages', 'runtime', 'dist', 'build.json'), `${JSON.stringify({ build: hash.slice(0, 12) })}\n`);
}

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

await bootstrap(import.meta.url, async () => {
  run('tsc', ['-b', 'services/gateway', 'services/worker', 'services/cron', 'services/ui', 'packages/cli']);
  copyAssets();
  await writeBuildStamp();
  run(process.execPath, ['packages/widget/build.mjs']);
  run(process.execPath, ['services/ui/build.mjs']);
});
