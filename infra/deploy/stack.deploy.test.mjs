// docker-compose.yml in a real engine. Counted is what was lost, doubled or refused, never how fast it was.
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { request } from 'node:https';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { compose, listContainers } from './compose.mjs';
import { keepStreams, openStreams, Probe } from './load.mjs';
import { redeploy, rolledServices } from './redeploy.mjs';
import { Stack } from './stack.mjs';

const START_TIMEOUT_MS = 60 * 60_000;
const TEST_TIMEOUT_MS = 20 * 60_000;
const ROLL_TIMEOUT_MS = 30 * 60_000;
const STREAMS = 40;
/** Half of the streams are turns that end within SHUTDOWN_GRACE_S, half are turns that outlive it. */
const kinds = [
  { kind: 'short', count: STREAMS / 2, words: 40, delayMs: 250 },
  { kind: 'long', count: STREAMS / 2, words: 240, delayMs: 250 },
];
/** `npm run prove -- deploy` asks for ten. */
const ROLLS = Number(process.env.DEPLOY_ROLLS ?? '1');

const startedMs = Date.now();
const report = (text) => process.stderr.write(`deploy ${((Date.now() - startedMs) / 1000).toFixed(0).padStart(5)} s  ${text}\n`);

const stack = new Stack();
let keys;
const asked = () => ({ url: stack.url, apiKey: keys.cs });
const allDone = Array.from({ length: STREAMS }, () => 'done');

async function ask(url, { token, ...init } = {}) {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const answer = await fetch(url, { ...init, headers: { ...headers, ...init.headers } });
  return {
    status: answer.status,
    type: answer.headers.get('content-type'),
    requestId: answer.headers.get('x-request-id'),
    text: await answer.text(),
  };
}

beforeAll(async () => {
  await stack.start(report);
  ({ keys } = JSON.parse(await stack.concierge('tenant', 'create', 'acme', '--json')));
  report('a tenant was made');
}, START_TIMEOUT_MS);

afterAll(async () => {
  await stack.stop();
  report('everything is removed');
}, TEST_TIMEOUT_MS);

describe('every container', () => {
  it('has limits, a health check, logs that rotate, a root that is read-only and a user without capabilities', async () => {
    const found = await stack.containers();
    expect(found.length).toBeGreaterThanOrEqual(11);
    for (const { Name, HostConfig, Config, State } of found) {
      const { ReadonlyRootfs, CapDrop, SecurityOpt, Memory, PidsLimit, LogConfig } = HostConfig;
      const shape = { Name, ReadonlyRootfs, CapDrop, SecurityOpt, rotates: LogConfig.Config['max-size'], health: State.Health?.Status };
      expect(shape).toEqual({
        Name,
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges:true'],
        rotates: '10m',
        health: 'healthy',
      });
      expect([Name, Memory > 0, PidsLimit > 0, /^(?:|0|root)(?::|$)/u.test(Config.User)]).toEqual([Name, true, true, false]);
    }
  });

  it('shows no secret to those who may inspect it', async () => {
    const shown = JSON.stringify(await stack.containers());
    const names = [
      'key_secret',
      'secrets_key',
      'console_secret',
      'ops_token',
      'redis_password',
      'database_password',
      'postgres_superuser_password',
    ];
    expect(names.filter((name) => shown.includes(stack.readSecret(name)))).toEqual([]);
  });

  it('reaches only what it must', async () => {
    const connects = async (service, host, port) => {
      const script = `require('net').connect(${port}, '${host}').on('connect', () => process.exit(0)).on('error', () => process.exit(1))`;
      return compose(['exec', '-T', service, 'node', '-e', script]).then(
        () => true,
        () => false,
      );
    };
    expect(await connects('gateway', 'redis', 6379)).toBe(true);
    expect(await connects('ui', 'balancer', 8000)).toBe(true);
    expect(await connects('ui', 'redis', 6379)).toBe(false);
    expect(await connects('ui', 'postgres', 5432)).toBe(false);
  });

  it('leaves the data folder to its owner', () => {
    expect((statSync(stack.dataPath()).mode & 0o777).toString(8)).toBe('700');
  });
});

describe('the balancer', () => {
  it('passes a turn on', async () => {
    const { ended } = openStreams(asked(), { name: 'first', count: 1, words: 5, delayMs: 10 });
    expect(await ended).toEqual(['done']);
    expect((await ask(`${stack.consoleUrl}/livez`)).status).toBe(200);
  });

  it('shows what is for operators on its own port alone, and to operators alone', async () => {
    for (const path of ['/metrics', '/ops/queues', '//ops/queues', '/%6fps/queues']) {
      const { status, type, text, requestId } = await ask(`${stack.url}${path}`, { token: stack.readSecret('ops_token') });
      expect([path, status, type]).toEqual([path, 404, 'application/problem+json']);
      expect(JSON.parse(text)).toMatchObject({ code: 'not_found', status: 404, requestId });
    }
    expect((await ask(`${stack.operatorsUrl}/metrics`)).status).toBe(401);
    expect((await ask(`${stack.operatorsUrl}/metrics`, { token: stack.readSecret('ops_token') })).text).toContain('process_cpu');
  });

  it('refuses a body that no gateway takes', async () => {
    const answer = await ask(`${stack.url}/api/uploads`, {
      method: 'POST',
      headers: { 'X-API-Key': keys.admin, 'Content-Type': 'application/octet-stream' },
      body: new Uint8Array(102 * 1024 * 1024),
    }).catch((error) => ({ text: String(error.cause?.code) }));
    // It answers before the body is there: a client that is still writing may see only that its body is not read.
    expect(answer.text).toMatch(/too_large|EPIPE|ECONNRESET|UND_ERR_SOCKET/u);
  });
});

describe('streams', () => {
  it(
    'lose and double no word when a gateway is killed',
    async () => {
      const [victim] = await listContainers('gateway');
      const { begun, ended } = openStreams(asked(), { name: 'gateway-killed', count: STREAMS, words: 60, delayMs: 250 });
      await begun;
      await stack.kill(victim);
      expect(await ended).toEqual(allDone);
      // Each turn asked the model once: none was accepted twice.
      expect(stack.modelCalls('gateway-killed')).toBe(STREAMS);
      await stack.startAgain(victim);
      report('a gateway was killed');
    },
    TEST_TIMEOUT_MS,
  );

  it(
    'lose and double no word when a worker is killed',
    async () => {
      const [victim] = await listContainers('worker');
      const { begun, ended } = openStreams(asked(), { name: 'worker-killed', count: STREAMS, words: 60, delayMs: 250 });
      await begun;
      await stack.kill(victim);
      expect(await ended).toEqual(allDone);
      await stack.startAgain(victim);
      report('a worker was killed');
    },
    TEST_TIMEOUT_MS,
  );
});

/** Does it under streams and probes: no request fails, no text has a gap, no turn that can end in time is run twice. */
async function underLoad(name, act) {
  const probe = new Probe(asked());
  const streams = kinds.map(({ kind, ...options }) => keepStreams(asked(), { name: `${name}-${kind}`, ...options }));
  await Promise.all(streams.map(async ({ begun }) => begun));
  await act();
  const [short, long] = await Promise.all(streams.map(async ({ stop }) => stop()));
  const count = await probe.stop();
  expect(probe.failures).toEqual([]);
  expect([...short, ...long].filter((end) => end !== 'done')).toEqual([]);
  expect(stack.modelCalls(`${name}-short`)).toBe(short.length);
  report(`${name}: ${count} requests and ${short.length + long.length} streams, none failed`);
}

describe('a redeploy', () => {
  it(
    'changes nothing where nothing has changed',
    async () => {
      const before = (await stack.containers()).map(({ Id }) => Id);
      await redeploy({ services: rolledServices, all: false, onStep: report });
      expect((await stack.containers()).map(({ Id }) => Id)).toEqual(before);
    },
    TEST_TIMEOUT_MS,
  );

  it.each(Array.from({ length: ROLLS }, (_, index) => index + 1))(
    'fails no request, cuts no text and runs no turn twice: roll %i',
    async (roll) => {
      const before = new Set((await stack.containers()).map(({ Id }) => Id));
      await underLoad(`roll-${roll}`, async () => redeploy({ services: rolledServices, all: true, onStep: report }));
      const after = await stack.containers();
      const kept = after.filter(({ Id, Config }) => rolledServices.includes(Config.Labels['com.docker.compose.service']) && before.has(Id));
      expect(kept.map(({ Name }) => Name)).toEqual([]);
      expect(after.length).toBe(before.size);
    },
    ROLL_TIMEOUT_MS,
  );

  it(
    'does not either when a gateway is killed in the middle of it',
    async () => {
      const old = await listContainers('gateway');
      const killed = Promise.withResolvers();
      const onStep = (line) => {
        report(line);
        if (line.startsWith('gateway 1 of 2')) killed.resolve(stack.kill(old[1]));
      };
      await underLoad('killed-in-roll', async () => {
        await redeploy({ services: ['gateway'], all: true, onStep }).catch((error) => report(`the roll ended: ${error.message}`));
        await killed.promise;
        // As its operator would.
        await redeploy({ services: ['gateway'], all: false, onStep: report });
      });
      const now = await listContainers('gateway');
      expect(now.length).toBe(old.length);
      expect(now.filter(({ Id }) => old.some((container) => container.Id === Id))).toEqual([]);
    },
    ROLL_TIMEOUT_MS,
  );

  it(
    'to more containers and back does not either',
    async () => {
      const scaled = { GATEWAY_REPLICAS: 'gateway', WORKER_REPLICAS: 'worker', CRON_REPLICAS: 'cron' };
      const scaleTo = async (count) => {
        for (const name of Object.keys(scaled)) process.env[name] = String(count);
        await redeploy({ services: Object.values(scaled), all: false, onStep: report });
        const found = await Promise.all(Object.values(scaled).map(async (service) => (await listContainers(service)).length));
        expect(found).toEqual(found.map(() => count));
      };
      await underLoad('scaled', async () => {
        await scaleTo(4);
        await scaleTo(2);
      });
    },
    ROLL_TIMEOUT_MS,
  );

  it(
    'stops where a new container does not become ready, and what served goes on',
    async () => {
      const before = (await listContainers('cron')).map(({ Id }) => Id);
      process.env.LOG_LEVEL = 'no-such-level';
      try {
        await expect(redeploy({ services: ['cron'], all: false, onStep: report })).rejects.toThrow(/LOG_LEVEL/u);
      } finally {
        delete process.env.LOG_LEVEL;
      }
      const after = await listContainers('cron');
      expect(after.map(({ Id }) => Id)).toEqual(before);
      expect(after.every(({ State }) => State.Health.Status === 'healthy')).toBe(true);
    },
    TEST_TIMEOUT_MS,
  );
});

/** Asks one of the names of the balancer's certificate, by the certificate alone. */
async function askSecurely({ httpsPort, certificate }, path, { host = 'localhost', body, ...options } = {}) {
  const sent = request({ host: '127.0.0.1', port: httpsPort, path, servername: host, ca: certificate, ...options });
  sent.setHeader('Host', host);
  sent.end(body);
  const [answer] = await once(sent, 'response');
  const { 'strict-transport-security': policy, 'set-cookie': cookies = [] } = answer.headers;
  return { status: answer.statusCode, policy, cookies, text: await readText(answer) };
}

describe('HTTPS', () => {
  it(
    'serves turns, the console by its own name, and nothing of operators, without another folder for the data',
    async () => {
      const data = async () =>
        (await listContainers('worker')).map(({ Mounts }) => Mounts.find(({ Destination }) => Destination === '/data'));
      const before = await data();
      const served = await stack.serveHttps();
      expect(await data()).toEqual(before);
      const headers = { 'X-API-Key': keys.cs, 'Content-Type': 'application/json', Accept: 'application/json' };
      const body = JSON.stringify({ message: '[[say:securely]]', sender: 'secure' });
      const turn = await askSecurely(served, '/api/cs', { method: 'POST', headers, body });
      expect([turn.status, turn.policy, JSON.parse(turn.text).reply]).toEqual([200, 'max-age=31536000', 'securely']);
      expect(await askSecurely(served, '/', { host: 'console.localhost' })).toMatchObject({
        status: 200,
        text: expect.stringContaining('<html'),
      });
      const signIn = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key: keys.admin }) };
      const signedIn = await askSecurely(served, '/sign-in', { host: 'console.localhost', ...signIn });
      expect([signedIn.status, signedIn.cookies]).toEqual([200, [expect.stringMatching(/^concierge_key=.*; Secure$/u)]]);
      expect((await askSecurely(served, '/ops/queues')).status).toBe(404);
      const plain = await fetch(`http://127.0.0.1:${served.httpPort}/api/cs`, { redirect: 'manual' });
      expect([plain.status, plain.headers.get('location')]).toEqual([308, expect.stringMatching(/^https:\/\/127\.0\.0\.1\S*\/api\/cs$/u)]);
    },
    TEST_TIMEOUT_MS,
  );
});

describe('the end', () => {
  it(
    'is clean: every service stops by itself, in time',
    async () => {
      const found = await listContainers('gateway');
      await compose(['stop', 'gateway', 'worker', 'cron', 'ui']);
      const all = await Promise.all(['gateway', 'worker', 'cron', 'ui'].map(async (service) => listContainers(service)));
      expect(all.flat().map(({ Name, State }) => [Name, State.ExitCode])).toEqual(all.flat().map(({ Name }) => [Name, 0]));
      expect(found.length).toBe(2);
    },
    TEST_TIMEOUT_MS,
  );
});
