// Variables that stand in a file: `.env` beside docker-compose.yml, which reads it, too.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { root } from './bootstrap.mjs';

/**
 * Reads `.env` in the repository's folder, or the file that ENV_FILE names, into the environment of this process; what
 * is set there already stays as it is.
 * @throws Error when ENV_FILE names a file that is not there
 */
export function loadEnvironmentFile() {
  const { ENV_FILE: named } = process.env;
  const file = resolve(root, named || '.env');
  if (existsSync(file)) process.loadEnvFile(file);
  else if (named) throw new Error(`ENV_FILE names ${file}, which does not exist.`);
}
