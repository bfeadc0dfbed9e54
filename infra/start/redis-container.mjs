// Redis in a container, for machines that have a Docker engine and no redis-server.
import { run, probePort } from './commands.mjs';
import { SupervisedProcess } from './supervised-process.mjs';
import { say } from './terminal.mjs';

const DEFAULT_IMAGE = 'redis:7-alpine';
const PULL_TIMEOUT_MS = 120_000;
/** An engine that hangs delays a start by this; one that has much to do takes seconds. */
const ANSWER_TIMEOUT_MS = 30_000;
const NOTICE_AFTER_MS = 4000;
const known = /^(?:[\w.:-]+\/)*(?:redis|valkey):/u;

/** Whether a Docker engine answers. */
export async function dockerAnswers() {
  const notice = setTimeout(() => say('Waiting for the Docker engine to answer ...'), NOTICE_AFTER_MS);
  const { ok } = await run('docker', ['version', '--format', '{{.Server.Version}}'], { timeoutMs: ANSWER_TIMEOUT_MS });
  clearTimeout(notice);
  return ok;
}

/** An image that is there, else one that can be pulled, else null. */
export async function findRedisImage() {
  if (!(await dockerAnswers())) return null;
  const { stdout } = await run('docker', ['image', 'ls', '--format', '{{.Repository}}:{{.Tag}}']);
  const local = stdout.split('\n').find((image) => known.test(image));
  if (local !== undefined) return local;
  say(`Pulling ${DEFAULT_IMAGE} ...`);
  return (await run('docker', ['pull', '-q', DEFAULT_IMAGE], { timeoutMs: PULL_TIMEOUT_MS })).ok ? DEFAULT_IMAGE : null;
}

/**
 * The container in the foreground of a child process, as this user, with its files in `folder` and a loopback port of
 * its own.
 */
export async function redisContainer({ image, folder, name, flags, env }) {
  await run('docker', ['rm', '-f', name]);
  const port = await probePort(0, '127.0.0.1');
  const user = `${process.getuid()}:${process.getgid()}`;
  const server = image.includes('valkey') ? 'valkey-server' : 'redis-server';
  const options = ['--rm', '--name', name, '--user', user, '-p', `127.0.0.1:${port}:6379`, '-v', `${folder}:/data`, '--workdir', '/data'];
  const args = ['run', ...options, '--entrypoint', server, image, ...flags];
  return {
    url: `redis://127.0.0.1:${port}`,
    child: new SupervisedProcess({ name: 'redis', command: 'docker', args, env, muted: true }),
    description: `container of ${image}`,
  };
}
