import { join } from 'node:path';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { describeObject, findRefusal, findUnknownFields } from './kubernetes.mjs';
import {
  canRender,
  findObject,
  findWorkload,
  isSelected,
  listContainers,
  listMountedSecrets,
  listSecretFiles,
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

/** What the chart reads of its own Secret with its own values. */
const ownKeys = [
  'key-secret',
  'secrets-key',
  'console-secret',
  'ops-token',
  'redis-password',
  'database-password',
  'postgres-password',
  'openai-api-key',
].map((key) => join('concierge-secrets', key));

let rendered;
let unknownFields;
beforeAll(async () => {
  rendered = await renderAll();
  const { object: misspelt } = structuredClone(findWorkload(rendered.default, 'gateway'));
  misspelt.spec.template.spec.containers[0].livenesProbe = {};
  unknownFields = await findUnknownFields({ ...rendered, misspelt: [misspelt] });
});

withHelm('the compiler as a judge of fields', () => {
  it('finds one that no API knows', () => {
    expect(unknownFields.filter((line) => line.includes('/misspelt.ts'))).toEqual([expect.stringContaining('livenesProbe')]);
  });
});

withHelm.each(valueFiles)('the objects of the values %s', (name) => {
  let objects;
  beforeAll(() => {
    objects = rendered[name];
  });

  it('are what the schemas of their APIs allow', async () => {
    const refusals = [];
    for (const object of objects) refusals.push(await findRefusal(object));
    expect(objects.length).toBeGreaterThan(10);
    expect(refusals.filter((refusal) => refusal !== null)).toEqual([]);
  });

  it('have no field that their APIs do not know', () => {
    expect(unknownFields.filter((line) => line.includes(`/${name}.ts`))).toEqual([]);
  });

  it('have names of their own, short enough, in the namespace of the release', () => {
    const names = objects.map(describeObject);
    expect(new Set(names).size).toBe(names.length);
    expect(objects.filter(({ metadata }) => metadata.namespace !== 'agents' || metadata.name.length > 63)).toEqual([]);
  });

  it('select their own pods, and each other by labels that are there', () => {
    const workloads = listWorkloads(objects);
    const select = (selector) => workloads.filter(({ labels }) => isSelected(labels, selector)).map(({ component }) => component);
    for (const { object, component } of workloads) expect(select(object.spec.selector.matchLabels)).toEqual([component]);
    for (const object of ofKind(objects, 'Service')) expect(select(object.spec.selector)).toEqual([readComponent(object)]);
    for (const object of ofKind(objects, 'PodDisruptionBudget', 'NetworkPolicy')) {
      const selector = object.spec.selector ?? object.spec.podSelector;
      expect(select(selector.matchLabels)).toEqual([readComponent(object)]);
    }
    for (const { pod, component } of workloads) {
      const spread = (pod.topologySpreadConstraints ?? []).map(({ labelSelector }) => select(labelSelector.matchLabels));
      expect(spread.flat().filter((found) => found !== component)).toEqual([]);
    }
  });

  it('scale workloads that are there and that name no number themselves', () => {
    const scaled = ofKind(objects, 'HorizontalPodAutoscaler', 'ScaledObject').map(({ spec }) => spec.scaleTargetRef.name);
    for (const target of scaled) expect(findObject(objects, 'Deployment', target).spec).not.toHaveProperty('replicas');
    const fixed = ofKind(objects, 'Deployment').filter(({ metadata }) => !scaled.includes(metadata.name));
    expect(fixed.filter(({ spec }) => !(spec.replicas >= 1))).toEqual([]);
  });

  it('mount volumes that the pod has, and every one of them', () => {
    for (const workload of listWorkloads(objects)) {
      const { pod, object } = workload;
      const has = [...(pod.volumes ?? []), ...(object.spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata)];
      const mounted = listContainers(workload).flatMap(({ volumeMounts }) => volumeMounts.map((mount) => mount.name));
      expect(new Set(mounted)).toEqual(new Set(has.map((volume) => volume.name)));
    }
  });

  it('take configuration and claims that are made here, or that the values name', () => {
    const given = { external: ['company-ca', 'tenants'] }[name] ?? [];
    const volumes = listWorkloads(objects).flatMap(({ pod }) => pod.volumes);
    const taken = volumes.flatMap(({ configMap, persistentVolumeClaim }) => [
      { kind: 'ConfigMap', named: configMap?.name },
      { kind: 'PersistentVolumeClaim', named: persistentVolumeClaim?.claimName },
    ]);
    const asked = taken.filter(({ named }) => named !== undefined && !given.includes(named));
    expect(asked.filter(({ kind, named }) => findObject(objects, kind, named) === undefined)).toEqual([]);
  });

  it('run scripts and read files that their configuration holds', () => {
    for (const workload of listWorkloads(objects)) {
      for (const { command = [], volumeMounts } of listContainers(workload)) {
        for (const path of command.filter((part) => part.startsWith('/config/'))) {
          const { name: volume } = volumeMounts.find(({ mountPath }) => path.startsWith(`${mountPath}/`));
          const { configMap } = workload.pod.volumes.find((candidate) => candidate.name === volume);
          expect(Object.keys(findObject(objects, 'ConfigMap', configMap.name).data)).toContain(path.slice('/config/'.length));
        }
      }
    }
  });

  it('give no secret as a variable, and every file that a variable names', () => {
    for (const workload of listWorkloads(objects)) {
      for (const container of listContainers(workload)) {
        expect((container.env ?? []).filter(({ valueFrom }) => valueFrom !== undefined)).toEqual([]);
        expect(container.envFrom).toBeUndefined();
        const files = listMountedSecrets(workload.pod, container);
        const named = Object.entries(readVariables(container)).filter(
          ([variable, value]) => variable.endsWith('_FILE') && value.startsWith('/run/'),
        );
        expect(named.filter(([, path]) => !files.has(path))).toEqual([]);
      }
    }
  });

  it('read keys of Secrets that are made here, or that the values name', () => {
    const made = ofKind(objects, 'Secret').flatMap(({ metadata, stringData }) =>
      Object.keys(stringData).map((key) => `${metadata.name}/${key}`),
    );
    const read = listWorkloads(objects).flatMap(({ pod }) => pod.volumes.flatMap(listSecretFiles));
    const monitors = ofKind(objects, 'ServiceMonitor').flatMap(({ spec }) =>
      spec.endpoints.map(({ authorization }) => authorization?.credentials),
    );
    const keys = [...read, ...monitors.filter((found) => found !== undefined).map(({ name: secret, key }) => ({ secret, key }))];
    const expected = {
      minimal: made,
      external: [
        ...['KEY_SECRET', 'SECRETS_KEY', 'CONSOLE_SECRET', 'OPS_TOKEN', 'REDIS_PASSWORD', 'database-url'].map((key) => `concierge/${key}`),
        'model-keys/openai',
      ],
      everything: [...ownKeys, 'concierge-secrets/web-search-key', 'local-model/token'],
      'sandbox-docker': [...ownKeys, 'engine-client/ca.crt', 'engine-client/tls.crt', 'engine-client/tls.key'],
    };
    expect([...new Set(keys.map(({ secret, key }) => `${secret}/${key}`))].toSorted()).toEqual((expected[name] ?? ownKeys).toSorted());
  });

  it('answer on ports that their containers open, at paths in their own names', () => {
    const opened = (component) =>
      findWorkload(objects, component).pod.containers.flatMap(({ ports = [] }) => ports.map((port) => port.name));
    for (const object of ofKind(objects, 'Service')) {
      expect(opened(readComponent(object))).toEqual(expect.arrayContaining(object.spec.ports.map(({ targetPort }) => targetPort)));
    }
    for (const { component, pod } of listWorkloads(objects)) {
      for (const container of pod.containers) {
        const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe].filter((probe) => probe !== undefined);
        expect(probes).toHaveLength(component === 'cli' ? 0 : 3);
        const asked = probes.map(({ httpGet, tcpSocket }) => (httpGet ?? tcpSocket)?.port).filter((port) => port !== undefined);
        expect(opened(component)).toEqual(expect.arrayContaining(asked));
      }
    }
    for (const object of ofKind(objects, 'NetworkPolicy')) {
      const ports = (object.spec.ingress ?? []).flatMap((rule) => rule.ports.map(({ port }) => port));
      expect(ports).toEqual(ports.length === 0 ? [] : opened(readComponent(object)));
    }
  });

  it('lead to services and ports that are there', () => {
    const hasPort = (service, port) =>
      findObject(objects, 'Service', service).spec.ports.some((one) => one.port === port || one.name === port);
    const rules = ofKind(objects, 'Ingress').flatMap(({ spec }) => spec.rules.flatMap(({ http }) => http.paths));
    expect(rules.filter(({ backend }) => !hasPort(backend.service.name, backend.service.port.number))).toEqual([]);
    for (const { spec } of ofKind(objects, 'ServiceMonitor')) {
      const found = ofKind(objects, 'Service').filter(({ metadata }) => isSelected(metadata.labels, spec.selector.matchLabels));
      expect(found.map(({ metadata }) => hasPort(metadata.name, spec.endpoints[0].port))).toEqual([true]);
    }
  });
});
