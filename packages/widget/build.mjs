import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { hashSources } from '../../infra/build-stamp.mjs';

const here = import.meta.dirname;
const target = join(here, 'dist/browser');
const sources = [
  join(here, 'src'),
  join(here, 'package.json'),
  join(here, 'build.mjs'),
  join(here, '../client/src'),
  join(here, '../../pnpm-lock.yaml'),
];

/**
 * Builds `dist/browser/widget.js`, unless it is there and nothing it is made of has changed. Put in place by one
 * rename: a gateway that is running meanwhile never reads half of it.
 * @returns {Promise<boolean>} whether there was anything to do
 */
export async function buildWidget() {
  const stamp = await hashSources(here, sources);
  const present = await readFile(join(target, '.stamp'), 'utf8').catch(() => '');
  if (present === stamp) return false;
  const { build } = await import('vite');
  const folder = `${target}.${String(process.pid)}`;
  try {
    await build({
      configFile: false,
      root: here,
      logLevel: 'warn',
      // The packages of this repository are read as sources, whether they have been compiled or not.
      resolve: { conditions: ['@concierge/source', 'module', 'browser', 'development|production'] },
      cacheDir: join(here, 'node_modules/.vite'),
      build: {
        outDir: folder,
        emptyOutDir: true,
        target: 'es2022',
        modulePreload: false,
        reportCompressedSize: false,
        // One plain script: it finds its own address and key in the element that loads it, which modules do not have.
        rolldownOptions: { input: join(here, 'src/main.ts'), output: { format: 'iife', entryFileNames: 'widget.js' } },
      },
    });
    await mkdir(target, { recursive: true });
    await rename(join(folder, 'widget.js'), join(target, 'widget.js'));
    await writeFile(join(target, '.stamp'), stamp);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return true;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.stdout.write((await buildWidget()) ? 'The widget has been built.\n' : 'The widget is up to date.\n');
}
