import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { connectRedis, ConfigError, createLog, hideCredentials, openRedis } from '@concierge/runtime';
import { canRun, eventually, freePort, ReplicatedRedis, temporaryDirectory } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { chooseTags, findHashSlot } from '../src/cluster/redis-slots.ts';
import { parseRedisAddress } from '../src/redis-address.ts';

const log = createLog({ service: 'test', level: 'silent' });
const WITHIN_MS = 60_000;

let cleanUp: AsyncDisposableStack;
setUpEach((stack) => {
  cleanUp = stack;
});

async function findProblem(url: string): Promise<string> {
  const error: unknown = await openRedis({ url, role: 'producer', log, timeoutMs: 5000 }, cleanUp).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof ConfigError ? (error.problems[0] ?? '') : `no ConfigError: ${String(error)}`;
}

/**
 * The problem of a server that answers. On a busy machine it has not begun to, or its answer to what it is comes too
 * late to count.
 */
async function findUnfit(url: string): Promise<string> {
  return await eventually(async () => {
    const found = await findProblem(url);
    if (!found.includes('it is ')) throw new Error(found);
    return found;
  });
}

async function runServer(...flags: readonly string[]): Promise<void> {
  const server = spawn('redis-server', ['--save', '', ...flags], { stdio: 'ignore' });
  await once(server, 'spawn');
  cleanUp.defer(async () => {
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
  });
}

describe('Redis behind sentinels', () => {
  it('is the master, and the replica that takes its place when it dies', async () => {
    const replicated = cleanUp.use(await ReplicatedRedis.start());
    const [producer, waiting] = await Promise.all([
      openRedis({ url: replicated.url, role: 'producer', log, timeoutMs: WITHIN_MS }, cleanUp),
      openRedis({ url: replicated.url, role: 'worker', log, timeoutMs: WITHIN_MS }, cleanUp),
    ]);
    await producer.set('kept', 'yes');
    await eventually(async () => (await producer.wait(1, 1000)) === 1);
    const before = await replicated.masterPort();
    await replicated.killMaster();
    expect(await replicated.masterPort()).not.toBe(before);
    expect(await waiting.get('kept')).toBe('yes');
    await eventually(async () => (await producer.set('again', 'yes')) === 'OK', { timeoutMs: WITHIN_MS });
  });

  it('is named in a line when there is no such master, or when a replica or a sentinel stands in its place', async () => {
    // The replica stays one.
    const replicated = cleanUp.use(await ReplicatedRedis.start({ downAfterMs: 600_000 }));
    const [sentinel = ''] = replicated.url.slice('redis+sentinel://'.length).split(/[,/]/u);
    expect(await findProblem(replicated.url.replace(/\/concierge$/u, '/nobody'))).toContain(
      'REDIS_URL: must lead to a Redis that can be used',
    );
    expect(await findUnfit(`redis://${sentinel}`)).toContain('it is a sentinel: its address begins with redis+sentinel://');
    expect(await findUnfit(`redis://127.0.0.1:${String(replicated.replicaPort)}`)).toContain('it is a replica');
    expect(await findProblem(`redis+sentinel://${sentinel}`)).toContain('the name of the master is missing');
  });
});

describe('a node of a cluster', () => {
  it('is refused where the address does not say that it is one', async () => {
    const [port, busPort] = [await freePort(), await freePort()];
    const folder = cleanUp.use(await temporaryDirectory()).path;
    // Its own choice, ten thousand above the port, is among those that kernels give to connections: one may have it.
    const bus = ['--cluster-port', String(busPort)];
    await runServer('--port', String(port), '--dir', folder, '--cluster-enabled', 'yes', ...bus);
    expect(await findUnfit(`redis://127.0.0.1:${String(port)}`)).toContain('it is a node of a cluster');
  });
});

const withTls = canRun(['openssl', 'version'], 'no openssl (apt install openssl)') ? describe : describe.skip;
withTls('Redis over TLS', () => {
  it('is reached with an authority and a certificate from files, and not without them', async () => {
    const folder = cleanUp.use(await temporaryDirectory()).path;
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2'];
    await promisify(execFile)('openssl', [...made, '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']);
    const port = String(await freePort());
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert];
    await runServer('--port', '0', '--tls-port', port, '--bind', '127.0.0.1', '--dir', folder, '--requirepass', 'p@ss', ...files);
    const address = `rediss://:p%40ss@127.0.0.1:${port}/2`;
    const whole = `${address}?ca=${cert}&cert=${cert}&key=${key}`;
    const redis = await openRedis({ url: whole, role: 'producer', log, timeoutMs: WITHIN_MS }, cleanUp);
    await redis.set('secret', 'yes');
    expect(await redis.client('INFO')).toContain('db=2');
    expect(await findProblem(`${address}?ca=${cert}`)).toContain('REDIS_URL: must lead to a Redis that can be used');
    expect(await findProblem(address)).toContain('REDIS_URL: must lead to a Redis that can be used');
    expect(await findProblem(`${address}?ca=${join(folder, 'none.pem')}`)).toContain('the file that ca names cannot be read');
  });
});

describe('an address', () => {
  it('says which family of addresses is asked for', () => {
    expect(parseRedisAddress('redis://me:p%40ss@redis.internal/2?family=0')).toEqual({
      host: 'redis.internal',
      port: 6379,
      db: 2,
      username: 'me',
      password: 'p@ss',
      family: 0,
    });
    expect(parseRedisAddress('redis://[fd00::1]:7000?family=6')).toEqual({ host: 'fd00::1', port: 7000, family: 6 });
  });

  it.each(['redis://me:50%off@host', 'rediss://m%e:p@host', 'redis+sentinel://a,b/50%', 'redis+cluster://:100%@a'])(
    'with a percent sign that is not encoded is bad configuration, and says how to write it: %s',
    (url) => {
      expect(() => parseRedisAddress(url)).toThrow(ConfigError);
      expect(() => parseRedisAddress(url)).toThrow('a percent sign in it is written %25');
    },
  );
});

describe('slots', () => {
  it.each([1, 2, 3, 4, 6, 12, 64])('are spread evenly over masters that share the key space evenly: %i', (count) => {
    const tags = chooseTags(count);
    expect(tags[0]).toBe('q0');
    const parts = tags.map((tag) => Math.floor((findHashSlot(tag) * count) / 16_384));
    expect(parts.toSorted((left, right) => left - right)).toEqual(Array.from({ length: count }, (_, part) => part));
  });
});

describe('an address in a log', () => {
  it.each([
    ['redis+sentinel://me:secret@a:1,b:2/main', 'redis+sentinel://a:1,b:2/main'],
    ['rediss+sentinel://a/main?sentinelPassword=secret&ca=/x.pem', 'rediss+sentinel://a/main?sentinelPassword=…&ca=/x.pem'],
  ])('has no password: %s', (url, shown) => {
    expect(hideCredentials(url)).toBe(shown);
  });

  it('of a cluster names some of its nodes, and no database', () => {
    expect(parseRedisAddress('redis+cluster://me:p@a,b:7000')).toEqual({
      cluster: [
        { host: 'a', port: 6379 },
        { host: 'b', port: 7000 },
      ],
      username: 'me',
      password: 'p',
    });
    expect(() => parseRedisAddress('redis+cluster://a,b/2')).toThrow('a cluster has one database');
  });

  it('that is none names the forms there are', () => {
    expect(() => connectRedis({ url: 'http://localhost', role: 'producer', log })).toThrow('redis+sentinel://host,host,host/master');
  });
});
