// The configuration of all services, checked before any of them starts.
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './commands.mjs';
import { providersTemplate } from './providers.mjs';
import { childEnvironment, nodeFlags } from './services.mjs';
import { StartError } from './terminal.mjs';

/** It takes a second; a machine that starts many other things at once needs longer. */
const TIMEOUT_MS = 180_000;
const script = fileURLToPath(new URL('check-configuration.mjs', import.meta.url));

/** Whether a variable is set, by itself or by the file that holds its value. */
export const isGiven = (env, name) => Boolean(env[name] || env[`${name}_FILE`]);

/** The environment that the services will have, with stand-ins for what the start makes when it has been checked. */
function completeEnvironment(env) {
  const providers = join(resolve(env.DATA_DIR || 'data'), 'providers.json');
  const generated = (name) => (isGiven(env, name) ? {} : { [name]: randomBytes(32).toString('base64url') });
  return {
    ...env,
    ...generated('KEY_SECRET'),
    ...generated('SECRETS_KEY'),
    ...generated('CONSOLE_SECRET'),
    ...(isGiven(env, 'REDIS_URL') ? {} : embeddedRedis('unix:/embedded')),
    PROVIDERS_FILE: env.PROVIDERS_FILE || (existsSync(providers) ? providers : providersTemplate),
  };
}

/** The password of the environment belongs to another Redis than the start script's own. */
export function embeddedRedis(url) {
  return { REDIS_URL: url, REDIS_PASSWORD: '', REDIS_PASSWORD_FILE: '' };
}

/**
 * Resolves with whether the demo model will answer.
 * @throws StartError with a line for every bad value of every service
 */
export async function checkConfiguration(env) {
  const asked = isGiven(env, 'REDIS_URL') ? ['--redis'] : [];
  // Without what service-preload.mjs does for processes that stay.
  const flags = nodeFlags.filter((flag) => flag.startsWith('--conditions'));
  const { ok, stdout, stderr } = await run(process.execPath, [...flags, script, ...asked], {
    timeoutMs: TIMEOUT_MS,
    env: childEnvironment(completeEnvironment(env)),
  });
  if (!ok) throw new StartError(`The configuration could not be checked: ${stderr.trim()}`);
  const { problems, isDemo } = JSON.parse(stdout);
  if (env.PROVIDERS_FILE && !existsSync(env.PROVIDERS_FILE) && !problems.some((problem) => problem.startsWith('PROVIDERS_FILE:'))) {
    problems.push(`PROVIDERS_FILE: must name a file that exists (given: ${JSON.stringify(env.PROVIDERS_FILE)})`);
  }
  if (problems.length > 0) {
    throw new StartError(`Concierge cannot start: bad configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
  }
  return { isDemo };
}
