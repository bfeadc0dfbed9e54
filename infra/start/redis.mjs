// The embedded Redis: found, in a container, or installed; a private child process with its files in the data folder.
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isGiven } from './configuration.mjs';
import { findProgram, probePort, run, until } from './commands.mjs';
import { findRedisImage, redisContainer } from './redis-container.mjs';
import { askRedis } from './redis-protocol.mjs';
import { SupervisedProcess } from './supervised-process.mjs';
import { installHint, installSystemPackage } from './system-packages.mjs';
import { StartError } from './terminal.mjs';

/** sockaddr_un holds 108 bytes with the closing NUL. */
const SOCKET_PATH_MAX_BYTES = 107;
const READY_TIMEOUT_MS = 30_000;
const LEFTOVER_TIMEOUT_MS = 10_000;
const STOP_TIMEOUT_MS = 15_000;

/**
 * Settings of the product: nothing accepted is evicted, a kill loses at most a second of what the inboxes hold anyway.
 */
const settings = {
  appendonly: 'yes',
  appendfsync: 'everysec',
  save: '',
  'maxmemory-policy': 'noeviction',
  loglevel: 'warning',
  daemonize: 'no',
};

const asFlags = (flags) => Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);

/**
 * Where the Redis of this data folder listens: a socket beside its files, or a loopback port when that path is too
 * long.
 */
async function chooseEndpoint(folder) {
  const socket = join(folder, 'redis.sock');
  if (Buffer.byteLength(socket) <= SOCKET_PATH_MAX_BYTES)
    return { url: `unix:${socket}`, flags: { port: '0', unixsocket: socket, unixsocketperm: '700' } };
  const port = String(await probePort(0, '127.0.0.1'));
  const password = randomBytes(24).toString('base64url');
  return { url: `redis://:${password}@127.0.0.1:${port}`, flags: { port, bind: '127.0.0.1', requirepass: password } };
}

function readText(file) {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return null;
  }
}

/** After a restart of the machine another server may have the process id of ours, which works in its own folder. */
function isOwnServer(pid, folder) {
  try {
    const isServer = /redis-server|valkey-server/u.test(readText(`/proc/${pid}/cmdline`) ?? '');
    return isServer && readlinkSync(`/proc/${pid}/cwd`) === realpathSync(folder);
  } catch {
    return false;
  }
}

/**
 * A start that was killed leaves its Redis behind: it is asked to save and go, so that the new one has the files to
 * itself.
 */
async function endLeftover(folder) {
  const url = readText(join(folder, 'url'));
  if (url !== null && (await askRedis(url, 'PING')) === 'PONG') {
    await askRedis(url, 'SHUTDOWN');
    const gone = await until(async () => (await askRedis(url, 'PING')) === null, { timeoutMs: LEFTOVER_TIMEOUT_MS });
    if (gone) return;
  }
  const pid = Number(readText(join(folder, 'redis.pid')));
  if (Number.isInteger(pid) && pid > 1 && isOwnServer(pid, folder)) process.kill(pid, 'SIGKILL');
}

async function findServer() {
  const onPath = findProgram('redis-server', 'valkey-server');
  if (onPath !== null) return { program: onPath };
  const image = await findRedisImage();
  if (image !== null) return { image };
  const refused = await installSystemPackage('redis');
  const installed = findProgram('redis-server', 'valkey-server');
  if (installed !== null) return { program: installed };
  throw new StartError(
    `Redis is needed and was not found (no redis-server on PATH, no Docker engine with an image of it, and ${refused}). Run: ${installHint('redis')}   or set REDIS_URL.`,
  );
}

async function describe(program) {
  const { stdout } = await run(program, ['--version']);
  const version = /v=(\S+)/u.exec(stdout)?.[1];
  return `private ${program.split('/').at(-1)}${version === undefined ? '' : ` ${version}`}`;
}

async function embed(folder, env) {
  await endLeftover(folder);
  const server = await findServer();
  if (server.image !== undefined) {
    const name = `concierge-redis-${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`;
    return redisContainer({ image: server.image, folder, name, flags: asFlags(settings), env });
  }
  const endpoint = await chooseEndpoint(folder);
  rmSync(join(folder, 'redis.sock'), { force: true });
  const flags = { ...settings, ...endpoint.flags, dir: folder, pidfile: join(folder, 'redis.pid') };
  const child = new SupervisedProcess({ name: 'redis', command: server.program, args: asFlags(flags), env, muted: true });
  return { url: endpoint.url, child, description: await describe(server.program) };
}

/**
 * REDIS_URL when it is set, else a private server. Resolves once it answers.
 * Returns `url`, `description`, and `stop`, which lets an embedded one write everything to disk.
 */
export async function startRedis(dataFolder, env) {
  if (isGiven(env, 'REDIS_URL')) return { url: env.REDIS_URL, description: 'REDIS_URL', child: null, stop: async () => undefined };
  const folder = join(dataFolder, 'redis');
  const { url, child, description } = await embed(folder, env);
  child.start();
  // The operators' command line finds the embedded Redis here.
  writeFileSync(join(folder, 'url'), `${url}\n`, { mode: 0o600 });
  const ready = await until(async () => (await askRedis(url, 'PING')) === 'PONG' || child.isFailing, { timeoutMs: READY_TIMEOUT_MS });
  if (!ready || child.isFailing) {
    await child.stop(0);
    throw new StartError('The embedded Redis did not start; its last lines are above.');
  }
  child.unmute();
  return { url, description, child, stop: () => child.stop(STOP_TIMEOUT_MS) };
}
