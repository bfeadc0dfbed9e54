// Docker Compose, as docker-compose.yml needs it.
import { run } from '../start/commands.mjs';

/** `!override` in the files beside docker-compose.yml. */
export const OLDEST_COMPOSE = '2.24.4';
const TIMEOUT_MS = 10 * 60_000;

/** Runs a program; resolves with its output. @throws Error with the last lines of what it said */
export async function must(command, args, options = {}) {
  const { ok, stdout, stderr } = await run(command, args, { timeoutMs: TIMEOUT_MS, ...options });
  if (ok) return stdout;
  throw new Error(`${command} ${args.slice(0, 3).join(' ')} failed: ${stderr.trim().split('\n').slice(-4).join('\n')}`);
}

export const compose = (args, options) => must('docker', ['compose', ...args], options);

const toNumbers = (version) => version.split('.').map((part) => Number.parseInt(part, 10));

/** Whether `version`, such as 2.40.3-3 or v2.24.4, is new enough. */
export function isNewEnough(version) {
  const have = toNumbers(version.replace(/^v/u, ''));
  for (const [index, wanted] of toNumbers(OLDEST_COMPOSE).entries()) {
    if (have[index] !== wanted) return have[index] > wanted;
  }
  return true;
}

/** Resolves with the reason why there is no Docker Compose that will do; null when there is one. */
export async function whyNoCompose() {
  const { ok, stdout } = await run('docker', ['compose', 'version', '--short']);
  if (!ok) return `Docker Compose ${OLDEST_COMPOSE} or newer is needed: "docker compose" does not answer.`;
  return isNewEnough(stdout.trim()) ? null : `Docker Compose ${OLDEST_COMPOSE} or newer is needed; this is ${stdout.trim()}.`;
}

/** What Docker knows of these containers. */
export async function inspect(ids) {
  return ids.length === 0 ? [] : JSON.parse(await must('docker', ['inspect', ...ids]));
}

/** The containers of a service, oldest first, whether they run or not. */
export async function listContainers(service) {
  const ids = (await compose(['ps', '--all', '--quiet', service])).split('\n').filter((id) => id !== '');
  const containers = await inspect(ids);
  return containers.sort((one, other) => one.Created.localeCompare(other.Created));
}
