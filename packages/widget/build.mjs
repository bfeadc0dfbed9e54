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

/** What a site loads, and what the console shows its owner in a frame. */
const scripts = [
  ['main.ts', 'widget.js'],
  ['preview-frame.ts', 'preview.js'],
];

/**
 * Builds the scripts in `dist/browser`, unless they are there and nothing they are made of has changed. Each is put in
 * place by one rename: a gateway that is running meanwhile never reads half of one.
 * @returns {Promise<boolean>} whether there was anything to do
 */
export async function buildWidget() {
  const stamp = await hashSources(here, sources);
  const present = await readFile(join(target, '.stamp'), 'utf8').catch(() => '');
  if (present === stamp) return false;
  const { build } = await import('vite');
  const folder = `${target}.${String(process.pid)}`;
  try {
    await mkdir(target, { recursive: true });
    for (const [entry, name] of scripts) {
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
          // Plain scripts: they find their address and key in the element that loads them, which modules do not have.
          rolldownOptions: { input: join(here, 'src', entry), output: { format: 'iife', entryFileNames: name } },
        },
      });
      await rename(join(folder, name), join(target, name));
    }
    await writeFile(join(target, '.stamp'), stamp);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return true;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.stdout.write((await buildWidget()) ? 'The widget has been built.\n' : 'The widget is up to date.\n');
}
