// Which model answers: the providers file when it names a usable key, else the demo model.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readJson } from './data-folder.mjs';
import { StartError } from './terminal.mjs';

/** What a new providers.json holds: edit it, or just set the environment variable it names. */
const template = fileURLToPath(new URL('../providers.json', import.meta.url));

/**
 * Whether one of the models that would be asked can be: the same answer as `hasUsableKey` of packages/model, before
 * that can be loaded.
 */
export function hasUsableKey(file, env) {
  const asked = [file.default, ...(file.fallbacks ?? [])];
  return asked.some((ref) => {
    const provider = file.providers?.[String(ref).split('/', 1)[0]];
    if (provider === undefined) return false;
    // One that names no key at all asks for none: a model server on this machine, say.
    return provider.apiKey !== undefined || provider.apiKeyEnv === undefined || Boolean(env[provider.apiKeyEnv]?.trim());
  });
}

/** Why the demo model answers, in words that say what to do. */
function missingKey(path, file) {
  const provider = file.providers?.[String(file.default).split('/', 1)[0]];
  const variable = provider?.apiKeyEnv;
  return `demo model, because ${path} names no usable key${variable ? ` (set ${variable}, or put a key there)` : ''}`;
}

/** The same rule as the worker's: in production the demo model answers only when that was asked for. */
function mayUseDemoModel(env) {
  return env.NODE_ENV !== 'production' || ['1', 'true', 'yes', 'on'].includes(String(env.DEMO_MODEL ?? '').toLowerCase());
}

/**
 * Makes a providers file when there is none; reports which model will answer. The worker reads the file and decides by
 * the same rule.
 */
export function chooseModel(dataFolder, env) {
  const path = env.PROVIDERS_FILE || join(dataFolder, 'providers.json');
  if (!existsSync(path)) {
    if (env.PROVIDERS_FILE) throw new StartError(`PROVIDERS_FILE names ${path}, which does not exist.`);
    // Only its owner may read it: a key may stand in it.
    writeFileSync(path, readFileSync(template), { mode: 0o600 });
  }
  const file = readJson(path);
  if (file === null || typeof file !== 'object') throw new StartError(`${path} is not a JSON object.`);
  if (hasUsableKey(file, env)) return { providersFile: path, description: `${file.default}, from ${path}` };
  const description = missingKey(path, file);
  if (!mayUseDemoModel(env))
    throw new StartError(`No model can answer in production (${description}); DEMO_MODEL=1 allows the demo model.`);
  return { providersFile: path, description };
}
