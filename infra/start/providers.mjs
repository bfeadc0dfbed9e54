// The providers file: made when there is none, and what is said about the model that will answer.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readJson } from './data-folder.mjs';

/** What a new providers.json holds: edit it, or just set the environment variable it names. */
export const providersTemplate = fileURLToPath(new URL('../providers.json', import.meta.url));

/** Why the demo model answers, in words that say what to do. */
function missingKey(path, file) {
  const provider = file.providers?.[String(file.default).split('/', 1)[0]];
  const variable = provider?.apiKeyEnv;
  return `demo model, because ${path} names no usable key${variable ? ` (set ${variable}, or put a key there)` : ''}`;
}

/** Makes a providers file when there is none. Returns its path. */
export function openProvidersFile(dataFolder, env) {
  if (env.PROVIDERS_FILE) return env.PROVIDERS_FILE;
  const path = join(dataFolder, 'providers.json');
  // Only its owner may read it: a key may stand in it.
  if (!existsSync(path)) writeFileSync(path, readFileSync(providersTemplate), { mode: 0o600 });
  return path;
}

/** For the banner. `isDemo`: what the worker decides from the file and the environment. */
export function describeModel(path, isDemo) {
  const file = readJson(path) ?? {};
  return isDemo ? missingKey(path, file) : `${file.default}, from ${path}`;
}
