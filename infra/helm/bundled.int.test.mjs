import { execFile, spawn } from 'node:child_process';
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { canRunPostgres, eventually, freePort, temporaryDirectory, TestPostgres } from '@concierge/testing';
import { renderChart } from './helm.mjs';
import { canRender, findObject, findWorkload, listMountedSecrets, readVariables } from './rendered.mjs';

// Helm, the compiler and the servers are programs of their own, which a busy machine makes wait.
jest.setTimeout(240_000);

const withHelm = canRender() ? describe : describe.skip;
const withPostgres = canRender() && canRunPostgres() ? describe : describe.skip;

const execute = promisify(execFile);
const PASSWORD = 'a p@ss:word/with%25 \'all\' "kinds" of #signs';

let objects;
beforeAll(async () => {
  objects = await renderChart();
});

/** Whether PostgreSQL would let this password in: what it keeps is `SCRAM-SHA-256$iterations:salt$stored:server`. */
function isPassword(verifier, password) {
  const [, iterations, salt, stored] = /^SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):/u.exec(verifier);
  const salted = pbkdf2Sync(password, Buffer.from(salt, 'base64'), Number(iterations), 32, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  return createHash('sha256').update(clientKey).digest('base64') === stored;
}

/** The script of a ConfigMap with the paths of the pod replaced by a folder of the test. */
const movePaths = (text, folder) =>
  ['/run/secrets/concierge', '/acl', '/data', '/config'].reduce((moved, path) => moved.replaceAll(path, join(folder, path)), text);

withHelm('the bundled Redis', () => {
  it("lets in the services' user with the password of the file and no other, and evicts nothing", async () => {
    await using folder = await temporaryDirectory();
    const { data } = findObject(objects, 'ConfigMap', 'demo-concierge-redis');
    for (const path of ['run/secrets/concierge', 'acl', 'data', 'config']) mkdirSync(join(folder.path, path), { recursive: true });
    writeFileSync(join(folder.path, 'run/secrets/concierge/redis_password'), `${PASSWORD}\n`);
    writeFileSync(join(folder.path, 'config/write-users.sh'), movePaths(data['write-users.sh'], folder.path));
    const port = await freePort();
    writeFileSync(join(folder.path, 'config/redis.conf'), `${movePaths(data['redis.conf'], folder.path)}\nport ${port}\n`);
    await execute('sh', [join(folder.path, 'config/write-users.sh')]);
    const server = spawn('redis-server', [join(folder.path, 'config/redis.conf')], { stdio: 'ignore' });
    const exited = once(server, 'exit');
    const ask = async (env, ...args) => {
      const { stdout } = await execute('redis-cli', ['-p', String(port), ...args], { env: { ...process.env, ...env } }).catch(
        (error) => error,
      );
      return stdout.trim();
    };
    const asServices = (...args) => ask({ REDISCLI_AUTH: PASSWORD }, '--user', 'concierge', ...args);
    try {
      await eventually(async () => (await asServices('ping')) === 'PONG', { timeoutMs: 120_000 });
      expect(await ask({}, 'ping')).toContain('NOAUTH');
      expect(await ask({ REDISCLI_AUTH: 'wrong' }, '--user', 'concierge', 'ping')).toContain('NOAUTH');
      expect(await asServices('config', 'get', 'maxmemory-policy')).toBe('maxmemory-policy\nnoeviction');
      expect(await asServices('info', 'persistence')).toContain('aof_enabled:1');
      for (const command of ['flushall', 'keys *', 'config set appendonly no'])
        expect(await asServices(...command.split(' '))).toContain('NOPERM');
    } finally {
      server.kill('SIGKILL');
      await exited;
    }
  });
});

withPostgres('the bundled PostgreSQL', () => {
  it('gets the files that its image and its first script read', () => {
    const { pod } = findWorkload(objects, 'postgresql');
    const [container] = pod.containers;
    const env = readVariables(container);
    const files = listMountedSecrets(pod, container);
    expect(files.get(env.POSTGRES_PASSWORD_FILE)).toEqual({ secret: 'concierge-secrets', key: 'postgres-password' });
    expect(files.get(env.CONCIERGE_PASSWORD_FILE)).toEqual({ secret: 'concierge-secrets', key: 'database-password' });
    const script = findObject(objects, 'ConfigMap', 'demo-concierge-postgresql').data['create-role.sh'];
    const read = [...script.matchAll(/\$\{?([A-Z_]+)/gu)].map(([, variable]) => variable);
    expect(Object.keys(env)).toEqual(expect.arrayContaining(read));
    expect(container.volumeMounts).toContainEqual({ name: 'init', mountPath: '/docker-entrypoint-initdb.d', readOnly: true });
    // The image runs what is executable, and takes the rest into its own shell.
    expect(pod.volumes.find(({ name }) => name === 'init').configMap.defaultMode).toBe(0o555);
  });

  it('makes a role for the services that is no superuser and owns its database', async () => {
    await using postgres = await TestPostgres.start();
    await using folder = await temporaryDirectory();
    // The cluster of the tests has a role of this name already.
    await postgres.asAdmin('drop database concierge', 'drop role concierge');
    const script = join(folder.path, 'create-role.sh');
    const password = join(folder.path, 'database_password');
    writeFileSync(script, findObject(objects, 'ConfigMap', 'demo-concierge-postgresql').data['create-role.sh']);
    writeFileSync(password, `${PASSWORD}\n`);
    const { hostname, port } = new URL(postgres.adminUrl);
    const env = { ...process.env, PGHOST: hostname, PGPORT: port, POSTGRES_USER: 'admin', CONCIERGE_PASSWORD_FILE: password };
    await execute('sh', [script], { env });
    const query = `select rolsuper, rolbypassrls, pg_get_userbyid(datdba), rolpassword from pg_authid, pg_database
      where rolname = 'concierge' and datname = 'concierge'`;
    const { stdout } = await execute('psql', ['-At', '-U', 'admin', '-d', 'postgres', '-c', query], { env });
    const [isSuper, bypasses, owner, verifier] = stdout.trim().split('|');
    expect([isSuper, bypasses, owner]).toEqual(['f', 'f', 'concierge']);
    expect(isPassword(verifier, PASSWORD)).toBe(true);
    expect(isPassword(verifier, `${PASSWORD}\n`)).toBe(false);
  });
});
