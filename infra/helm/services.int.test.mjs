import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { limits, routes } from '@concierge/contract';
import { hasUsableKey, loadProviders } from '@concierge/model';
import { temporaryDirectory } from '@concierge/testing';
import { root } from '../bootstrap.mjs';
import {
  canRender,
  findObject,
  findWorkload,
  isSelected,
  listContainers,
  listMountedSecrets,
  listWorkloads,
  ofKind,
  readComponent,
  readVariables,
  renderAll,
  valueFiles,
} from './rendered.mjs';

// Helm, the compiler and the servers are programs of their own, which a busy machine makes wait.
jest.setTimeout(240_000);

const withHelm = canRender() ? describe : describe.skip;

/** Component of the chart → whose code it is. */
const programs = {
  gateway: 'services/gateway',
  worker: 'services/worker',
  cron: 'services/cron',
  console: 'services/ui',
  cli: 'packages/cli',
};
/** What a service closes its connections in, beyond the grace. */
const CLOSE_SECONDS = 15;
/** Read by Node and by the client of the Docker engine, not by the services' own code. */
const readElsewhere = ['NODE_EXTRA_CA_CERTS', 'DOCKER_HOST', 'DOCKER_TLS_VERIFY', 'DOCKER_CERT_PATH'];
/** Given as files only: every process that reads X reads X_FILE. */
const secretVariables = [
  'KEY_SECRET',
  'SECRETS_KEY',
  'CONSOLE_SECRET',
  'OPS_TOKEN',
  'REDIS_PASSWORD',
  'REDIS_URL',
  'DATABASE_PASSWORD',
  'DATABASE_URL',
  'WEB_SEARCH_KEY',
];
/** A value for each secret that any service takes. */
const standIns = { REDIS_URL: 'redis://redis', DATABASE_URL: 'postgres://postgres/concierge' };

const read = (path) => readFileSync(join(root, path), 'utf8');
/** Components that clients of the cluster connect to. */
const ports = new Set(['gateway', 'console']);
const findProviders = (objects) => ofKind(objects, 'ConfigMap').find(({ data }) => 'providers.json' in data).data['providers.json'];
/** The code of a folder, as one text. */
const readSources = (folder) =>
  globSync('**/*.ts', { cwd: join(root, folder), exclude: ['**/*.test.ts'] })
    .map((path) => read(join(folder, path)))
    .join('\n');

const isOwn = (component) => component in programs;

let rendered;
let configs;
beforeAll(async () => {
  rendered = await renderAll();
  const entries = Object.entries(programs).map(async ([component, folder]) => {
    const { readConfig } = await import(join(root, folder, 'src', 'config.ts'));
    return [component, readConfig];
  });
  configs = Object.fromEntries(await Promise.all(entries));
});

/** The environment as the program sees it once it has read its files. */
function readFilled(container) {
  const filled = Object.entries(readVariables(container)).map(([variable, value]) => {
    const name = variable.replace(/_FILE$/u, '');
    const isSecret = name !== variable && value.startsWith('/run/secrets/');
    return isSecret ? [name, standIns[name] ?? 's'.repeat(43)] : [variable, value];
  });
  return Object.fromEntries(filled);
}

withHelm.each(valueFiles)('the services of the values %s', (name) => {
  let objects;
  let own;
  beforeAll(() => {
    objects = rendered[name];
    own = listWorkloads(objects).filter(({ component }) => isOwn(component));
  });

  it('get an environment that their own code takes', () => {
    for (const { component, pod } of own) {
      const env = readFilled(pod.containers[0]);
      expect(() => configs[component](env)).not.toThrow();
    }
  });

  it('get variables that .env.example has, each once', () => {
    const known = [...read('.env.example').matchAll(/^#?([A-Z][A-Z0-9_]*)=/gmu)].map(([, variable]) => variable);
    const modelKeys = Object.values(JSON.parse(findProviders(objects)).providers).map(({ apiKeyEnv }) => apiKeyEnv);
    const files = [...secretVariables, ...modelKeys].map((variable) => `${variable}_FILE`);
    for (const { pod } of own) {
      const given = pod.containers[0].env.map((variable) => variable.name);
      expect(new Set(given).size).toBe(given.length);
      const allowed = [...known, ...files, ...readElsewhere];
      expect(given.filter((variable) => !allowed.includes(variable))).toEqual([]);
    }
  });

  it('listen where the chart looks for them', () => {
    for (const { component, pod } of own) {
      const [{ env, ports = [] }] = pod.containers;
      const config = configs[component](readFilled({ env }));
      const listens = { gateway: config.port, console: config.port, worker: config.metrics?.port, cron: config.metrics?.port }[component];
      expect(ports.map(({ containerPort }) => containerPort)).toEqual(listens === undefined ? [] : [listens]);
      expect(config.metrics?.host ?? '0.0.0.0').toBe('0.0.0.0');
      expect(config.host).toBeUndefined();
    }
    const { pod } = findWorkload(objects, 'gateway');
    expect(configs.gateway(readFilled(pod.containers[0])).port).toBe(
      configs.gateway({ REDIS_URL: 'redis://r', KEY_SECRET: 's'.repeat(32) }).port,
    );
  });

  it('are probed at paths that they answer without a key', () => {
    const open = Object.values(routes)
      .filter(({ method, auth }) => method === 'get' && auth === 'none')
      .map(({ path }) => path);
    const answered = { gateway: open, console: ['/livez'], worker: ['/metrics'], cron: ['/metrics'] };
    for (const { component, pod } of own) {
      const [{ startupProbe, livenessProbe, readinessProbe }] = pod.containers;
      const paths = [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet?.path).filter((path) => path !== undefined);
      expect(answered[component] ?? []).toEqual(expect.arrayContaining(paths));
    }
    // Alive is not ready: a gateway is not restarted because Redis is away.
    const [gateway] = findWorkload(objects, 'gateway').pod.containers;
    expect([gateway.livenessProbe.httpGet.path, gateway.readinessProbe.httpGet.path]).toEqual(['/livez', '/readyz']);
    expect(readSources('services/ui/src')).toContain("'/livez'");
    expect(readSources('packages/runtime/src')).toContain("'/metrics'");
  });

  it('are ended no sooner than they can have drained', () => {
    for (const { component, pod } of own.filter((workload) => workload.component !== 'cli')) {
      const [container] = pod.containers;
      const config = configs[component](readFilled(container));
      const hook = container.lifecycle?.preStop.sleep.seconds ?? 0;
      const needed = hook + (config.graceMs + (config.leaveMs ?? 0)) / 1000 + CLOSE_SECONDS;
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed);
      // What balancers and endpoints have to forget.
      expect(hook > 0).toBe(ports.has(component));
    }
  });

  it('run as the images that the Dockerfile makes, as its user, with nothing to write to but their volumes', () => {
    const targets = [...read('infra/Dockerfile').matchAll(/^FROM \S+ AS (\w+)$/gmu)].map(([, target]) => target);
    const { version } = JSON.parse(read('package.json'));
    for (const { component, pod } of own) {
      const [{ image }] = pod.containers;
      const target = /(?:^|\/)concierge-([a-z]+)(?:-bubblewrap)?:(?<tag>[\d.]+)(?:@sha256:[0-9a-f]{64})?$/u.exec(image);
      expect(targets).toContain(target?.[1]);
      expect(image.includes('-bubblewrap:') ? version : target?.groups.tag).toBe(version);
      expect(programs[component]).toMatch(new RegExp(`/${target?.[1]}$`, 'u'));
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 });
    }
  });

  it('are confined, but for what the sandbox needs', () => {
    const loosened = { everything: ['worker'], 'sandbox-privileged': ['worker'] }[name] ?? [];
    const confined = {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    };
    for (const workload of listWorkloads(objects)) {
      expect(workload.pod.automountServiceAccountToken).toBe(false);
      for (const { securityContext } of listContainers(workload)) {
        expect(securityContext.readOnlyRootFilesystem).toBe(true);
        expect(loosened.includes(workload.component) ? confined : securityContext).toEqual(confined);
      }
    }
  });

  it('have models whose keys they get', async () => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'providers.json');
    writeFileSync(path, findProviders(objects));
    const env = readFilled(findWorkload(objects, 'worker').pod.containers[0]);
    const providers = await loadProviders(path, (variable) => env[variable]);
    const isDemo = env.DEMO_MODEL === '1';
    expect(isDemo || hasUsableKey(providers)).toBe(true);
    expect(isDemo ? [] : providers.unusable).toEqual([]);
  });
});

withHelm.each(valueFiles.filter((name) => name !== 'minimal'))('the network policies of the values %s', (name) => {
  let objects;
  let own;
  let policies;
  beforeAll(() => {
    objects = rendered[name];
    own = listWorkloads(objects).filter(({ component }) => isOwn(component));
    policies = new Map(ofKind(objects, 'NetworkPolicy').map((policy) => [readComponent(policy), policy.spec]));
  });

  const selectsPods = (peers, component) =>
    (peers ?? []).some(({ podSelector }) => podSelector && isSelected(findWorkload(objects, component).labels, podSelector.matchLabels));
  const mayAsk = (component) =>
    own.map((one) => one.component).filter((one) => policies.get(one).egress.some(({ to }) => selectsPods(to, component)));

  it('leave no pod without one', () => {
    expect(new Set(policies.keys())).toEqual(new Set(listWorkloads(objects).map(({ component }) => component)));
  });

  it('open Redis and PostgreSQL to what works on files, and to nothing else', () => {
    for (const store of ['redis', 'postgresql'].filter((component) => policies.has(component))) {
      const { ingress, egress } = policies.get(store);
      const admitted = own.map(({ component }) => component).filter((component) => selectsPods(ingress[0].from, component));
      expect(new Set(admitted)).toEqual(new Set(['gateway', 'worker', 'cron', 'cli']));
      expect(mayAsk(store)).toEqual(admitted);
      expect(egress).toEqual([]);
    }
  });

  it('let the console ask the gateways, and nothing else of the release', () => {
    expect(mayAsk('gateway')).toEqual(['console']);
    const [, toGateway, ...others] = policies.get('console').egress;
    expect(selectsPods(toGateway.to, 'gateway')).toBe(true);
    expect(others).toEqual([]);
  });
});

withHelm('the ways into the cluster', () => {
  it('are not narrowed where policies are switched off', () => {
    expect(ofKind(rendered.minimal, 'NetworkPolicy')).toEqual([]);
  });

  it('let an answer take as long as a turn may, and streams and uploads pass as they come', () => {
    const turnSeconds = limits.turnTimeoutMs / 1000;
    const { annotations } = findObject(rendered.everything, 'Ingress', 'demo-concierge-gateway').metadata;
    const nginx = Object.fromEntries(
      Object.entries(annotations).map(([key, value]) => [key.replace('nginx.ingress.kubernetes.io/', ''), value]),
    );
    for (const limit of ['proxy-read-timeout', 'proxy-send-timeout']) expect(Number(nginx[limit])).toBeGreaterThan(turnSeconds);
    expect(nginx).toMatchObject({
      'proxy-buffering': 'off',
      'proxy-request-buffering': 'off',
      'proxy-body-size': '101m',
      'proxy-next-upstream': 'error',
    });
    expect(annotations).toHaveProperty(['cert-manager.io/cluster-issuer'], 'letsencrypt');
    const haproxy = findObject(rendered.external, 'Ingress', 'demo-concierge-gateway').metadata.annotations;
    expect(Number.parseInt(haproxy['haproxy.org/timeout-server'], 10)).toBeGreaterThan(turnSeconds);
  });

  it('show the figures of gateways to who has the token of operators', () => {
    const { spec } = findObject(rendered.everything, 'ServiceMonitor', 'demo-concierge-gateway');
    const gateway = findWorkload(rendered.everything, 'gateway');
    const files = listMountedSecrets(gateway.pod, gateway.pod.containers[0]);
    const { secret, key } = files.get(readVariables(gateway.pod.containers[0]).OPS_TOKEN_FILE);
    expect(spec.endpoints).toEqual([
      expect.objectContaining({ path: '/metrics', authorization: { type: 'Bearer', credentials: { name: secret, key } } }),
    ]);
    const jobs = [...read('infra/prometheus/prometheus.yml').matchAll(/job_name: (\w+)/gu)].map(([, job]) => job);
    expect(ofKind(rendered.everything, 'ServiceMonitor').map(readComponent).toSorted()).toEqual(['cron', 'gateway', 'worker']);
    expect(jobs).toEqual(expect.arrayContaining(['cron', 'gateway', 'worker']));
  });
});

withHelm('the number of workers under KEDA', () => {
  it('follows the age of the oldest waiting turn, and the turns that wait or run', () => {
    const { spec } = findObject(rendered.everything, 'ScaledObject', 'demo-concierge-worker');
    const triggers = Object.fromEntries(spec.triggers.map(({ name, metricType, metadata }) => [name, { metricType, ...metadata }]));
    const reasons = 'namespace="agents",reason=~"no_free_slot|no_worker"';
    expect(triggers).toMatchObject({
      // The whole age against the limit, whatever the number of workers.
      'oldest-waiting-turn': { metricType: 'Value', threshold: '5', query: `max(concierge_oldest_waiting_turn_age_seconds{${reasons}})` },
      turns: {
        metricType: 'AverageValue',
        threshold: '20',
        query: `sum(max by (reason) (concierge_waiting_turns{${reasons}})) + sum(concierge_turns_running{namespace="agents"})`,
      },
    });
    for (const { metadata } of spec.triggers) expect(metadata).toMatchObject({ ignoreNullValues: 'false', authModes: 'bearer' });
    expect(spec.minReplicaCount).toBeGreaterThanOrEqual(1);
  });
});

withHelm('the sandbox of the workers', () => {
  const find = (name) => {
    const { pod } = findWorkload(rendered[name], 'worker');
    return { pod, container: pod.containers[0], env: readVariables(pod.containers[0]) };
  };

  it('is none by itself', () => {
    expect(find('default').env.SANDBOX).toBe('off');
  });

  it('is bubblewrap in a user namespace of the pod, with a whole /proc', () => {
    const { pod, container, env } = find('everything');
    expect(env.SANDBOX).toBe('bubblewrap');
    expect(pod.hostUsers).toBe(false);
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      procMount: 'Unmasked',
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'Unconfined' },
      appArmorProfile: { type: 'Unconfined' },
    });
  });

  it('is bubblewrap in a privileged container where there is no user namespace', () => {
    const { pod, container } = find('sandbox-privileged');
    expect(pod).not.toHaveProperty('hostUsers');
    expect(container.securityContext).toEqual({ privileged: true, readOnlyRootFilesystem: true });
    expect(pod.securityContext.runAsUser).toBe(1000);
  });

  it('is an engine over TLS, with the three files that its client reads', () => {
    const { pod, container, env } = find('sandbox-docker');
    expect(env).toMatchObject({ SANDBOX: 'docker', SANDBOX_RUNTIME: 'runsc', HOST_DATA_DIR: '/srv/concierge', DOCKER_TLS_VERIFY: '1' });
    const files = [...listMountedSecrets(pod, container).keys()].filter((path) => path.startsWith(`${env.DOCKER_CERT_PATH}/`));
    expect(new Set(files.map((path) => path.slice(env.DOCKER_CERT_PATH.length + 1)))).toEqual(new Set(['ca.pem', 'cert.pem', 'key.pem']));
    const { egress } = ofKind(rendered['sandbox-docker'], 'NetworkPolicy').find((policy) => readComponent(policy) === 'worker').spec;
    expect(egress).toContainEqual({ to: [{ ipBlock: { cidr: '10.3.0.7/32' } }], ports: [{ protocol: 'TCP', port: 2376 }] });
  });
});
