import { copyFile, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { hashSources, listFiles } from '../../infra/build-stamp.mjs';
import { buildWidget } from '../../packages/widget/build.mjs';

const here = import.meta.dirname;
const root = join(here, '../..');
const target = join(here, 'dist/web');
const stampFile = join(target, '.stamp');

/** Everything that the pages are made of. */
const sources = [
  join(here, 'web'),
  join(here, 'src'),
  join(here, 'package.json'),
  join(here, 'build.mjs'),
  join(root, 'packages/client/src'),
  join(root, 'packages/contract/src'),
  join(root, 'packages/widget/src'),
  join(root, 'pnpm-lock.yaml'),
];
const compressible = /\.(?:html|js|css|svg|json)$/u;
const gzipped = promisify(gzip);
const brotlied = promisify(brotliCompress);

/** So that serving costs no processor time: each file also as it goes over the wire. */
async function compress(folder) {
  for (const path of (await listFiles(folder)).filter((file) => compressible.test(file))) {
    const bytes = await readFile(path);
    const small = await brotlied(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    });
    await writeFile(`${path}.br`, small);
    await writeFile(`${path}.gz`, await gzipped(bytes, { level: 9 }));
  }
}

/**
 * Builds the console's pages into `dist/web`, unless they are there and nothing they are made of has changed. The
 * finished folder is put in place at once: a console that is being served meanwhile never finds half of one.
 * @returns {Promise<boolean>} whether there was anything to do
 */
export async function buildPages({ logLevel = 'warn' } = {}) {
  const stamp = await hashSources(root, sources);
  const present = await readFile(stampFile, 'utf8').catch(() => '');
  if (present === stamp) return false;
  const { build } = await import('vite');
  // Beside the target, so that putting it in place is one rename; in a folder that every tool leaves alone.
  const folder = `${target}.${String(process.pid)}`;
  const previous = `${folder}.old`;
  try {
    await build({ configFile: join(here, 'web/vite.config.mjs'), logLevel, build: { outDir: folder } });
    // The panel of the widget, as a frame of the settings shows it.
    await buildWidget();
    await copyFile(join(root, 'packages/widget/dist/browser/preview.js'), join(folder, 'widget-preview.js'));
    await compress(folder);
    await writeFile(join(folder, '.stamp'), stamp);
    await rename(target, previous).catch((error) => {
      if (error.code !== 'ENOENT') throw error;
    });
    await rename(folder, target);
  } finally {
    await rm(folder, { recursive: true, force: true });
    await rm(previous, { recursive: true, force: true });
  }
  return true;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.stdout.write((await buildPages({ logLevel: 'info' })) ? 'The pages have been built.\n' : 'The pages are up to date.\n');
}
