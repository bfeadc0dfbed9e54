import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';

export interface Version {
  /** Of the release; all packages have the same. */
  readonly version: string;
  /** Which sources it was compiled from, as a hash; `source` for a start from source. */
  readonly build: string;
}

const Manifest = z.object({ version: z.string() });
/** Written by infra/build.mjs. */
const Build = z.object({ build: z.string() });

let known: Version | undefined;

/** What runs in this process. */
export function readVersion(): Version {
  known ??= {
    // As far from `src` as from `dist`.
    version: Manifest.parse(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))).version,
    build: readBuild(),
  };
  return known;
}

function readBuild(): string {
  const file = new URL('build.json', import.meta.url);
  return existsSync(file) ? Build.parse(JSON.parse(readFileSync(file, 'utf8'))).build : 'source';
}
