// The tenant `demo` with its two keys: made once, printed at every start.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './commands.mjs';
import { readJson, writeSecretJson } from './data-folder.mjs';
import { complain, StartError } from './terminal.mjs';

const TENANT = 'demo';
const TIMEOUT_MS = 60_000;
const ASK_TIMEOUT_MS = 30_000;
const UNAUTHORIZED = 401;

/** Runs one `concierge … --json` over this data folder. */
async function concierge(args, env) {
  const result = await run(process.execPath, ['infra/concierge.mjs', ...args, '--json'], { timeoutMs: TIMEOUT_MS, env });
  if (!result.ok) return { ok: false, problem: result.stderr.trim() || result.stdout.trim() };
  return { ok: true, answer: JSON.parse(result.stdout) };
}

async function createKey(scope, env) {
  const { ok, answer, problem } = await concierge(['key', 'create', TENANT, '--scope', scope, '--label', 'demo'], env);
  if (!ok) throw new StartError(`The demo tenant's ${scope} key could not be made: ${problem}`);
  return answer.key;
}

async function createKeys(env, tenantExists) {
  if (tenantExists) return { admin: await createKey('admin', env), cs: await createKey('cs', env) };
  const { ok, answer, problem } = await concierge(['tenant', 'create', TENANT, '--plan', 'standard'], env);
  if (!ok) throw new StartError(`The demo tenant could not be made: ${problem}`);
  return answer.keys;
}

/** The keys of the demo tenant. `renew`: the stored ones are of no use any more (another KEY_SECRET, revoked). */
export async function demoKeys(dataFolder, env, renew = false) {
  const file = join(dataFolder, 'demo-keys.json');
  const tenantExists = existsSync(join(dataFolder, 'tenants', TENANT, 'tenant.json'));
  const stored = readJson(file);
  if (stored !== null && tenantExists && !renew) return stored.keys;
  const keys = await createKeys(env, tenantExists);
  writeSecretJson(file, { tenantId: TENANT, keys });
  return keys;
}

/** One that does not answer refuses nothing: the banner names it as not ready. */
async function isRefused(port, key) {
  try {
    const request = { headers: { 'x-api-key': key }, signal: AbortSignal.timeout(ASK_TIMEOUT_MS) };
    const response = await fetch(`http://127.0.0.1:${port}/api/whoami`, request);
    await response.body?.cancel();
    return response.status === UNAUTHORIZED;
  } catch {
    return false;
  }
}

/** These keys, or new ones where the gateway at `port` refuses one of them. */
export async function renewRefused(keys, { port, dataFolder, env }) {
  const refused = await Promise.all(Object.values(keys).map((key) => isRefused(port, key)));
  if (!refused.includes(true)) return keys;
  try {
    return await demoKeys(dataFolder, env, true);
  } catch (error) {
    // All else runs: it is no reason to end the start.
    complain(error.message);
    return keys;
  }
}
