import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { errorCodes, Problem } from '@concierge/contract';
import { root } from '../bootstrap.mjs';
import { isNewEnough } from './compose.mjs';
import { readDpkg, readHashes, toSbom } from './sbom.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');
const lockfile = read('pnpm-lock.yaml');

let folder;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'concierge-deploy-test-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('an error of the balancer', () => {
  const text = read('infra/balancer/haproxy.cfg') + read('infra/balancer/tls.cfg');
  const written = [...text.matchAll(/ status (\d+) content-type application\/problem\+json .*lf-string '([^']+)'/gu)];

  it.each(written.map(([, status, document]) => [Number(status), document]))(
    '%i is a problem document of the service',
    (status, document) => {
      const problem = Problem.parse(JSON.parse(document.replace('%[unique-id]', 'r_1')));
      expect([problem.status, problem.type, problem.title]).toEqual([
        status,
        `urn:concierge:problem:${problem.code}`,
        errorCodes[problem.code].title,
      ]);
    },
  );

  it('is written for every status that the balancer answers by itself', () => {
    expect(new Set(written.map(([, status]) => status))).toEqual(new Set(['400', '404', '408', '413', '500', '502', '503', '504']));
  });
});

describe('what the balancer says of a request', () => {
  /** The rules of a section, such as `frontend secure`. */
  const findRules = (path, section) => {
    const [, rules = ''] = read(path).split(new RegExp(`^${section}$`, 'mu'));
    return rules
      .split(/^\S/mu)[0]
      .split('\n')
      .map((line) => line.trim());
  };

  it('is that it came over HTTPS, also to the console, whose cookie is then Secure', () => {
    expect(findRules('infra/balancer/tls.cfg', 'frontend secure')).toContain('http-request set-header X-Forwarded-Proto https');
    // And no client says so by itself to a gateway.
    const atGateways = findRules('infra/balancer/haproxy.cfg', 'backend gateways');
    expect(atGateways).toContain('http-request set-header X-Forwarded-Proto http unless { ssl_fc }');
  });
});

describe('make-secrets.sh', () => {
  const make = () => execFileSync(join(root, 'infra/make-secrets.sh'), [join(folder, 'secrets')], { encoding: 'utf8' });
  const secret = (name) => readFileSync(join(folder, 'secrets', name), 'utf8');

  it('makes every secret of the compose file, in a folder that only its owner enters', () => {
    make();
    const named = [...read('docker-compose.yml').matchAll(/^ {2}(\w+): \{ file: '\$\{SECRETS_DIR/gmu)].map(([, name]) => name);
    expect(readdirSync(join(folder, 'secrets')).sort()).toEqual(named.sort());
    expect(statSync(join(folder, 'secrets')).mode & 0o777).toBe(0o700);
    // Users of containers read their file.
    expect(named.filter((name) => (statSync(join(folder, 'secrets', name)).mode & 0o444) !== 0o444)).toEqual([]);
    expect(secret('key_secret').trim().length).toBeGreaterThanOrEqual(32);
    expect(Buffer.from(secret('secrets_key').trim(), 'base64url')).toHaveLength(32);
    expect(secret('redis_acl')).toContain(`#${createHash('sha256').update(secret('redis_password').trim()).digest('hex')}`);
  });

  it('keeps what is there', () => {
    make();
    const before = secret('key_secret');
    rmSync(join(folder, 'secrets', 'ops_token'));
    expect(make()).toBe(`made ${join(folder, 'secrets', 'ops_token')}\n`);
    expect(secret('key_secret')).toBe(before);
  });
});

describe('the version of Docker Compose', () => {
  it.each([
    ['2.40.3-3', true],
    ['v2.24.4', true],
    ['3.0.0', true],
    ['2.24.3', false],
    ['1.29.2', false],
  ])('%s will do: %s', (version, expected) => {
    expect(isNewEnough(version)).toBe(expected);
  });

  it('is the one in the documents', () => {
    const [, oldest] = /OLDEST_COMPOSE = '([\d.]+)'/u.exec(read('infra/deploy/compose.mjs'));
    expect(read('docs/deploying.md')).toContain(`Docker Compose ${oldest} or newer`);
    expect(read('docker-compose.yml')).toContain(`Docker Compose ${oldest} or newer`);
  });
});

describe('the list of what is in an image', () => {
  it('has packages of npm with the hash of the lockfile, and those of Debian', () => {
    const dpkg = 'Package: libc6\nVersion: 2.36-9+deb12u10\nArchitecture: amd64\nDescription: C\n more\n\nPackage: odd\n';
    const packages = [{ kind: 'npm', name: '@bull-board/api', version: '9.10.1', license: 'MIT' }, ...readDpkg(dpkg)];
    const { components } = toSbom({ image: 'x', id: 'sha256:1', version: '1' }, packages, lockfile);
    expect(components.map(({ purl }) => purl)).toEqual([
      'pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64',
      'pkg:npm/%40bull-board/api@9.10.1',
    ]);
    expect(components[1].hashes).toEqual([{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/u) }]);
  });

  it('finds the hashes of plain and scoped packages', () => {
    const hashes = readHashes(lockfile);
    expect(hashes.size).toBeGreaterThan(500);
    expect([hashes.has('express@5.3.0'), hashes.has('@bull-board/ui@9.10.1')]).toEqual([true, true]);
  });
});

describe('trim-image.mjs', () => {
  const put = (path, text = '') => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const trim = () => execFileSync(process.execPath, [join(root, 'infra/trim-image.mjs'), folder], { stdio: 'pipe' });

  it('leaves what runs: no sources, tests, declarations and compilers', () => {
    const own = 'node_modules/.pnpm/@concierge+tenant@file+x/node_modules/@concierge/tenant';
    put('package.json', '{"name":"@concierge/gateway"}');
    const kept = ['dist/main.js', `${own}/dist/index.js`, `${own}/starter/SOUL.md`, 'node_modules/.pnpm/zod@4/node_modules/zod/index.js'];
    const removed = [
      'src/main.ts',
      'dist/main.test.js',
      'dist/main.d.ts',
      'dist/main.js.map',
      `${own}/src/index.ts`,
      `${own}/test/a.int.test.ts`,
      'node_modules/.pnpm/typescript@7.0.2/node_modules/typescript/lib/tsc.js',
      'node_modules/.pnpm/@typescript+typescript-linux-x64@7.0.2/node_modules/x/tsc',
      'node_modules/.pnpm/zod@4/node_modules/zod/index.d.cts',
    ];
    for (const path of [...kept, ...removed]) put(path);
    trim();
    expect(kept.filter((path) => !existsSync(join(folder, path)))).toEqual([]);
    expect(removed.filter((path) => existsSync(join(folder, path)))).toEqual([]);
  });

  it('refuses a folder that is no deployed service', () => {
    put('package.json', '{"name":"something-else"}');
    expect(trim).toThrow(/is no deployed service/u);
  });
});
