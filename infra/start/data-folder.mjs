// The data folder: where it is, its secrets, and the rule that one start at a time uses it.
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { StartError } from './terminal.mjs';

const OWNER_ONLY = 0o600;

export function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    // The parser's message quotes what it stopped at, which may be a secret.
    throw new StartError(`${file} cannot be read: ${error.name === 'SyntaxError' ? 'it is no JSON' : error.message}`);
  }
}

/** Moved over what was there, whole: a full disk or a kill in the middle would otherwise leave no secret at all. */
export function writeSecretJson(file, value) {
  const beside = `${file}.${process.pid}.new`;
  try {
    writeFileSync(beside, `${JSON.stringify(value, null, 2)}\n`, { mode: OWNER_ONLY, flush: true });
    renameSync(beside, file);
  } finally {
    rmSync(beside, { force: true });
  }
}

export function openDataFolder(env) {
  const folder = resolve(env.DATA_DIR || 'data');
  try {
    for (const part of ['tenants', 'index', 'redis']) mkdirSync(join(folder, part), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(`The data folder ${folder} cannot be made: ${error.message}. Set DATA_DIR to a folder that can be written.`);
  }
  return folder;
}

const secretNames = ['KEY_SECRET', 'SECRETS_KEY', 'CONSOLE_SECRET'];

/**
 * KEY_SECRET signs API keys, SECRETS_KEY (32 bytes, base64url) encrypts channel credentials, CONSOLE_SECRET seals the
 * console's sign-ins: made once, unless the environment has them, or names files with them.
 */
export function loadSecrets(folder, env) {
  const file = join(folder, 'secrets.json');
  const stored = readJson(file) ?? {};
  const fresh = Object.fromEntries(secretNames.map((name) => [name, randomBytes(32).toString('base64url')]));
  const secrets = { ...fresh, ...stored };
  if (secretNames.some((name) => stored[name] === undefined)) writeSecretJson(file, secrets);
  const chosen = secretNames.filter((name) => !env[`${name}_FILE`]);
  return Object.fromEntries(chosen.map((name) => [name, env[name] || secrets[name]]));
}

function isStartScript(pid) {
  try {
    return /\b(?:start|dev)\.mjs\b/u.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return process.platform !== 'linux' && isAlive(pid);
    return false;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A start that a full disk or a kill ended while it wrote its claim has none. */
function readClaim(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

/**
 * Refuses a second start over the same data. What a killed one left behind does not count. Returns what releases the
 * folder.
 */
export function claimDataFolder(folder) {
  const file = join(folder, 'run.json');
  const other = readClaim(file);
  if (other !== null && other.pid !== process.pid && isStartScript(other.pid)) {
    throw new StartError(
      `Concierge already runs over ${folder} (process ${other.pid}). Stop it with Ctrl-C, or set DATA_DIR to another folder.`,
    );
  }
  writeFileSync(file, `${JSON.stringify({ pid: process.pid })}\n`);
  return () => rmSync(file, { force: true });
}
