// Stand-ins, from Debian packages, for the images on which `infra/Dockerfile` and `docker-compose.yml` build: for
// machines that can pull nothing. Each has the users, the paths and the entry point of the image that it stands for.
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root as repository } from '../bootstrap.mjs';
import { run } from '../start/commands.mjs';
import { must } from './compose.mjs';

const FETCH_TIMEOUT_MS = 10 * 60_000;
const IMPORT_TIMEOUT_MS = 5 * 60_000;
/** Not /tmp, which is memory on many machines. */
const workFolder = process.env.TMPDIR ?? '/var/tmp';
const CA_BUNDLE = '/etc/ssl/certs/ca-certificates.crt';

const unpackScript = fileURLToPath(new URL('debian-root.sh', import.meta.url));

function write(file, text, mode = 0o644) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, mode);
}

function addUser(root, { name, uid, gid = uid }) {
  write(join(root, 'etc/passwd'), `root:x:0:0:root:/root:/bin/sh\n${name}:x:${uid}:${gid}:${name}:/home/${name}:/bin/sh\n`);
  write(join(root, 'etc/group'), `root:x:0:\n${name}:x:${gid}:\n`);
}

/** Shell and small commands, where the packages have none. */
function addBusybox(root) {
  for (const name of ['sh', 'cat', 'grep', 'wget', 'test', 'mkdir', 'chmod', 'sleep', 'ls', 'id']) {
    const link = join(root, 'usr/bin', name);
    if (!existsSync(link)) symlinkSync('busybox', link);
  }
}

/**
 * The package of the npm that runs this. Where a package's own Node comes first in PATH, `npm root -g` answers for
 * another one.
 */
async function findNpm() {
  const { npm_execpath: running } = process.env;
  if (running !== undefined) return dirname(dirname(running));
  return join((await run('npm', ['root', '-g'])).stdout.trim(), 'npm');
}

async function finishNode(root) {
  addUser(root, { name: 'node', uid: 1000 });
  for (const platform of ['x64', 'arm64']) {
    const binary = join(repository, 'node_modules', `node-linux-${platform}`, 'bin/node');
    if (existsSync(binary)) cpSync(binary, join(root, 'usr/local/bin/node'), { dereference: true });
  }
  const modules = join(root, 'usr/local/lib/node_modules');
  cpSync(await findNpm(), join(modules, 'npm'), { recursive: true, dereference: true });
  for (const name of ['npm', 'npx']) symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'usr/local/bin', name));
  // The registry is reached as this machine reaches it.
  if (existsSync(CA_BUNDLE)) write(join(root, CA_BUNDLE), readFileSync(CA_BUNDLE));
  write(join(root, 'usr/local/etc/npmrc'), `cafile=${CA_BUNDLE}\n`);
}

const postgresEntry = `#!/bin/bash
set -euo pipefail
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  chmod 700 "$PGDATA"
  initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust --auth-host=scram-sha-256 >/dev/null
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
  pg_ctl start -w -o '-c listen_addresses=' >/dev/null
  for script in /docker-entrypoint-initdb.d/*.sh; do . "$script"; done
  pg_ctl stop -w -m fast >/dev/null
fi
exec "$@"
`;

/** By the variable of docker-compose.yml, or of the Dockerfile, that names the image. */
const recipes = {
  NODE_IMAGE: {
    suite: 'bookworm',
    packages: ['bash', 'dash', 'coreutils', 'ca-certificates', 'libstdc++6', 'grep', 'sed', 'findutils', 'tar', 'gzip'],
    finish: finishNode,
    changes: ['ENV PATH=/usr/local/bin:/usr/bin:/bin', `ENV NODE_EXTRA_CA_CERTS=${CA_BUNDLE}`, 'CMD ["node"]'],
  },
  REDIS_IMAGE: {
    suite: 'bookworm',
    packages: ['redis-server', 'redis-tools', 'busybox'],
    finish: async (root) => {
      addUser(root, { name: 'redis', uid: 999, gid: 1000 });
      mkdirSync(join(root, 'data'));
    },
    owned: { data: '999:1000' },
    changes: ['WORKDIR /data', 'VOLUME /data', 'ENV PATH=/usr/bin:/bin', 'CMD ["redis-server"]'],
  },
  POSTGRES_IMAGE: {
    suite: 'trixie',
    packages: ['postgresql-17', 'postgresql-client-17', 'bash', 'busybox'],
    finish: async (root) => {
      addUser(root, { name: 'postgres', uid: 70 });
      mkdirSync(join(root, 'var/lib/postgresql/data'), { recursive: true, mode: 0o700 });
      mkdirSync(join(root, 'var/run/postgresql'), { recursive: true });
      mkdirSync(join(root, 'docker-entrypoint-initdb.d'));
      write(join(root, 'usr/local/bin/docker-entrypoint.sh'), postgresEntry, 0o755);
      // The compiler of queries and its library, half of all that was unpacked.
      rmSync(join(root, 'usr/lib/x86_64-linux-gnu/libLLVM.so.19.1'), { force: true });
    },
    owned: { 'var/lib/postgresql': '70:70' },
    changes: [
      'ENV PATH=/usr/lib/postgresql/17/bin:/usr/local/bin:/usr/bin:/bin',
      'ENV PGDATA=/var/lib/postgresql/data',
      'VOLUME /var/lib/postgresql/data',
      'ENTRYPOINT ["docker-entrypoint.sh"]',
      'CMD ["postgres"]',
    ],
  },
  HAPROXY_IMAGE: {
    suite: 'forky',
    packages: ['haproxy', 'busybox'],
    finish: async (root) => {
      addUser(root, { name: 'haproxy', uid: 99 });
      write(join(root, 'usr/local/bin/docker-entrypoint.sh'), '#!/bin/sh\nshift\nexec haproxy -W -db "$@"\n', 0o755);
    },
    changes: [
      'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/bin',
      'USER 99',
      'ENTRYPOINT ["docker-entrypoint.sh"]',
      'CMD ["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]',
    ],
  },
  // Passes on whatever is asked: what the real one refuses is its own business.
  SOCKET_PROXY_IMAGE: {
    suite: 'bookworm',
    packages: ['socat', 'busybox'],
    finish: async (root) => {
      addUser(root, { name: 'proxy', uid: 65534 });
      write(
        join(root, 'usr/local/bin/socket-proxy'),
        '#!/bin/sh\nexec socat TCP-LISTEN:2375,fork,reuseaddr UNIX-CONNECT:/var/run/docker.sock\n',
        0o755,
      );
      write(join(root, 'healthcheck'), '#!/bin/sh\nexec socat -u OPEN:/dev/null TCP:127.0.0.1:2375\n', 0o755);
    },
    changes: ['ENV PATH=/usr/local/bin:/usr/bin:/bin', 'WORKDIR /', 'ENTRYPOINT ["socket-proxy"]'],
  },
};

/** Raised when a `finish` changes what it makes. */
const RECIPES_VERSION = 2;

const recipeHash = createHash('sha256')
  .update(JSON.stringify([RECIPES_VERSION, recipes, postgresEntry]))
  .update(readFileSync(unpackScript))
  .digest('hex')
  .slice(0, 12);

const toTag = (variable) => `concierge-stand-in/${variable.replace('_IMAGE', '').toLowerCase()}:${recipeHash}`;

async function makeImage(variable) {
  const { suite, packages, finish, owned = {}, changes } = recipes[variable];
  const folder = mkdtempSync(join(workFolder, 'concierge-base-'));
  try {
    await must(unpackScript, [folder, suite, ...packages], { timeoutMs: FETCH_TIMEOUT_MS });
    const root = join(folder, 'root');
    mkdirSync(join(root, 'tmp'), { recursive: true });
    chmodSync(join(root, 'tmp'), 0o1777);
    await finish(root);
    if (existsSync(join(root, 'usr/bin/busybox'))) addBusybox(root);
    for (const [path, owner] of Object.entries(owned)) await must('chown', ['-R', owner, join(root, path)]);
    const tar = join(folder, 'root.tar');
    await must('tar', ['--create', '--numeric-owner', '--file', tar, '--directory', root, '.'], { timeoutMs: IMPORT_TIMEOUT_MS });
    const options = changes.flatMap((line) => ['--change', line]);
    await must('docker', ['import', ...options, tar, toTag(variable)], { timeoutMs: IMPORT_TIMEOUT_MS });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Makes what is not there yet; resolves with the variables that have compose and the Dockerfile use them. Needs root,
 * Debian's apt and an engine.
 */
export async function ensureBaseImages(onStep) {
  const variables = Object.keys(recipes);
  await Promise.all(
    variables.map(async (variable) => {
      if ((await run('docker', ['image', 'inspect', toTag(variable)])).ok) return;
      onStep(`making ${toTag(variable)}`);
      await makeImage(variable);
    }),
  );
  return Object.fromEntries(variables.map((variable) => [variable, toTag(variable)]));
}
