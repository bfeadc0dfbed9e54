import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { root } from '../bootstrap.mjs';
import { chart, renderChart, runHelm } from './helm.mjs';
import { canRender, findWorkload, ofKind, readComponent, readVariables } from './rendered.mjs';

// Helm, the compiler and the servers are programs of their own, which a busy machine makes wait.
jest.setTimeout(240_000);

const withHelm = canRender() ? describe : describe.skip;

const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'));
const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'));

/** Resolves with what Helm says about these values; rejects when it takes them. */
async function readRefusal(given) {
  const refused = await runHelm(['template', 'demo', chart, '--values', '-'], stringify(given)).then(
    () => null,
    (error) => error.stderr,
  );
  if (refused === null) throw new Error('Helm takes these values');
  return refused;
}

/** Paths of an object down to what is no object, or is one that users fill themselves. */
function listPaths(value, at = '') {
  const isLeaf = typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0;
  if (isLeaf || openMaps.has(at)) return [at];
  return Object.entries(value).flatMap(([name, child]) => listPaths(child, at === '' ? name : `${at}.${name}`));
}

/** What these hold is the user's. */
const openMaps = new Set([
  'models.providers',
  ...['gateway', 'worker', 'cron', 'console', 'cli', 'redis', 'postgresql'].map((part) => `${part}.resources`),
  'sandbox.docker.tlsKeys',
]);

function findProperty(path) {
  let found = schema;
  for (const name of path.split('.')) found = found.properties?.[name] ?? { missing: path };
  return found;
}

describe('the values of the chart', () => {
  it('are all in the schema, and the schema has no others', () => {
    const paths = listPaths(values);
    expect(paths.length).toBeGreaterThan(100);
    expect(paths.filter((path) => findProperty(path).missing !== undefined)).toEqual([]);
    const named = (node, at) =>
      node.properties === undefined || openMaps.has(at)
        ? [at]
        : Object.entries(node.properties).flatMap(([name, child]) => named(child, at === '' ? name : `${at}.${name}`));
    // `global` is Helm's own; the digests are as many as the images.
    const extra = named(schema, '').filter((path) => path !== 'global' && !path.startsWith('image.digests.') && !paths.includes(path));
    expect(extra).toEqual([]);
  });

  it('are all read by the templates', async () => {
    const names = await readdir(join(chart, 'templates'));
    const text = names.map((name) => readFileSync(join(chart, 'templates', name), 'utf8')).join('\n');
    const last = new Set(listPaths(values).map((path) => path.split('.').at(-1)));
    expect([...last].filter((name) => !new RegExp(`[.$]${name}\\b|"${name}"`, 'u').test(text))).toEqual([]);
  });

  it('have the version of the services', () => {
    const { version, appVersion } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8'));
    const { version: own } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect([version, appVersion]).toEqual([own, own]);
  });

  it('name the keys of the Secret as the README lists them', () => {
    const readme = readFileSync(join(chart, 'README.md'), 'utf8');
    const listed = [...readme.matchAll(/^\| `([a-z-]+)` \|/gmu)].map(([, key]) => key);
    const keys = [...Object.values(values.secrets.keys), ...values.models.keys.map(({ key }) => key)];
    expect(new Set(listed)).toEqual(new Set(keys));
  });
});

/** Wrong values, and where the schema says that they are. One run of Helm names all of them. */
const wrong = {
  'unknown: true': ['', "'unknown' not allowed"],
  'image: { tagg: x }': ['/image', "'tagg' not allowed"],
  'image: { digests: { gateway: latest } }': ['/image/digests/gateway', 'does not match'],
  'secrets: { existingSecret: "" }': ['/secrets/existingSecret', 'minLength'],
  'models: { keys: [{ variable: openai-key, key: k }] }': ['/models/keys/0/variable', 'does not match'],
  'extraEnv: { OPS_TOKEN: secret-in-the-open }': ['', "invalid propertyName 'OPS_TOKEN'"],
  'logLevel: loud': ['/logLevel', 'one of'],
  'publicUrl: chat.example.com': ['/publicUrl', 'does not match'],
  'shutdownGraceSeconds: 25s': ['/shutdownGraceSeconds', 'want integer'],
  'persistence: { accessMode: ReadOnlyMany }': ['/persistence/accessMode', 'one of'],
  'gateway: { processes: 17 }': ['/gateway/processes', 'maximum'],
  'gateway: { preStopSeconds: 0 }': ['/gateway/preStopSeconds', 'minimum'],
  'worker: { replicas: 0 }': ['/worker/replicas', 'minimum'],
  'worker: { tenantShare: 0 }': ['/worker/tenantShare', 'minimum'],
  'cron: { databasePool: many }': ['/cron/databasePool', 'want integer'],
  'antiAffinity: hardest': ['/antiAffinity', 'one of'],
  'webSearch: { provider: searxng }': ['/webSearch/url', 'minLength'],
  'sandbox: { kind: docker, docker: { host: "unix:///var/run/docker.sock" } }': ['/sandbox/docker/host', 'does not match'],
  'sandbox: { kind: docker }': ['/sandbox/docker/tlsSecret', 'minLength'],
  'postgresql: { external: { networks: [database] } }': ['/postgresql/external/networks/0', 'does not match'],
  'redis: { external: { url: "redis://user:password@redis" } }': ['/redis/external/url', 'does not match'],
  'postgresql: { maxConnections: 5 }': ['/postgresql/maxConnections', 'minimum'],
  'ingress: { enabled: true }': ['/ingress/api/host', 'minLength'],
  'networkPolicy: { closedNetworks: [internal] }': ['/networkPolicy/closedNetworks/0', 'does not match'],
  'keda: { enabled: true }': ['/keda/prometheus', 'minLength'],
};

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

function mergeValues(first, second) {
  const merged = { ...first };
  for (const [name, value] of Object.entries(second))
    merged[name] = isObject(value) && isObject(first[name]) ? mergeValues(first[name], value) : value;
  return merged;
}

withHelm('the schema of the values', () => {
  let refusal;
  beforeAll(async () => {
    refusal = await readRefusal(
      Object.keys(wrong)
        .map((text) => parse(text))
        .reduce(mergeValues),
    );
  });

  it.each(Object.entries(wrong))('refuses %s', (_, [path, reason]) => {
    const lines = refusal.split('\n').filter((line) => line.includes(`at '${path}'`));
    expect(lines.join('\n')).toContain(reason);
  });
});

const trial = { create: true, values: { 'key-secret': 'k' } };

withHelm('values that contradict each other', () => {
  it.each([
    [{ models: { keys: [] } }, 'models.providers: openai reads its key from OPENAI_API_KEY, which models.keys does not have'],
    [{ worker: { concurrency: 8, tenantShare: 9 } }, 'worker.tenantShare must not be more than worker.concurrency'],
    [
      { keda: { enabled: true, prometheus: 'http://p', minReplicas: 9, maxReplicas: 8 } },
      'keda.minReplicas must not be more than keda.maxReplicas',
    ],
    [{ keda: { enabled: true, prometheus: 'http://p' } }, 'postgresql.maxConnections is 200, and the pods may open 297 during an update'],
    [
      { gateway: { autoscaling: { enabled: true, minReplicas: 7 } } },
      'gateway.autoscaling.minReplicas must not be more than gateway.autoscaling.maxReplicas',
    ],
    [{ secrets: trial }, 'secrets.values has no database-password, which gateway reads as DATABASE_PASSWORD'],
    [{ redis: { bundled: false } }, "at '/redis/external': 'anyOf' failed"],
    [{ postgresql: { bundled: false } }, "at '/postgresql/external': 'anyOf' failed"],
  ])('such as %j are refused with the reason', async (given, reason) => {
    expect(await readRefusal(given)).toContain(reason);
  });
});

withHelm('values of one installation', () => {
  it('change what they name, and nothing else', async () => {
    const set = [
      'worker.concurrency=7',
      'shutdownGraceSeconds=300',
      'extraEnv.META_GRAPH_URL=https://graph.example.com',
      'antiAffinity=hard',
      'podDisruptionBudgets=false',
    ];
    const objects = await renderChart({ set, release: 'concierge' });
    const { pod } = findWorkload(objects, 'worker');
    expect(readVariables(pod.containers[0])).toMatchObject({
      WORKER_CONCURRENCY: '7',
      SHUTDOWN_GRACE_S: '300',
      META_GRAPH_URL: 'https://graph.example.com',
    });
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(300);
    expect(pod.affinity.podAntiAffinity).toHaveProperty('requiredDuringSchedulingIgnoredDuringExecution');
    expect(ofKind(objects, 'PodDisruptionBudget')).toEqual([]);
    expect(objects.map(({ metadata }) => metadata.name).filter((name) => !/^concierge(?:-|$)/u.test(name))).toEqual([]);
  });

  it('let crons out of the cluster where they have a server for e-mails, and only there', async () => {
    const isLetOut = async (set) => {
      const policies = ofKind(await renderChart({ set }), 'NetworkPolicy');
      const { egress } = policies.find((policy) => readComponent(policy) === 'cron').spec;
      return egress.some(({ to = [], ports }) => ports === undefined && to.some(({ ipBlock }) => ipBlock?.cidr === '0.0.0.0/0'));
    };
    expect(await isLetOut([])).toBe(false);
    expect(await isLetOut(['extraEnv.SMTP_URL=smtps://mail.example.com'])).toBe(true);
  });

  it("replace the pods when the models change, and keep the tenants' files when the release goes", async () => {
    const [first, second] = await Promise.all([renderChart(), renderChart({ set: ['models.providers.default=openai/other'] })]);
    const readSums = (objects) =>
      objects.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.template.metadata.annotations?.['checksum/providers']);
    expect(readSums(first)).not.toEqual(readSums(second));
    expect(ofKind(first, 'PersistentVolumeClaim')[0].metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' });
    expect(ofKind(first, 'PersistentVolumeClaim')[0].spec.accessModes).toEqual(['ReadWriteMany']);
  });

  it("pass Helm's own examination", async () => {
    expect(await runHelm(['lint', '--strict', chart])).toContain('0 chart(s) failed');
  });
});
