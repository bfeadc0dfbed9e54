// The objects of each value file, and questions about them.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { chart, findHelm, renderChart } from './helm.mjs';

/** The values of the chart itself, and each file that lies beside it. */
export const valueFiles = ['default', ...readdirSync(join(chart, 'ci')).map((file) => file.replace(/\.yaml$/u, ''))];

/** Resolves with the objects by the name of their value file. */
export async function renderAll() {
  const entries = valueFiles.map(async (name) => [name, await renderChart({ files: name === 'default' ? [] : [`${name}.yaml`] })]);
  return Object.fromEntries(await Promise.all(entries));
}

/**
 * Whether the chart can be rendered here, for `describe.skip`.
 * @throws with CI=true, where nothing may be left out
 */
export function canRender() {
  if (findHelm() !== null) return true;
  if (process.env.CI === 'true') throw new Error('no Helm on PATH, and the package has none for this machine');
  return false;
}

export const ofKind = (objects, ...kinds) => objects.filter(({ kind }) => kinds.includes(kind));
export const findObject = (objects, kind, name) => objects.find((object) => object.kind === kind && object.metadata.name === name);
export const readComponent = ({ metadata }) => metadata.labels['app.kubernetes.io/component'];

/** Deployments and StatefulSets, with the specification of their pods at hand. */
export const listWorkloads = (objects) =>
  ofKind(objects, 'Deployment', 'StatefulSet').map((object) => ({
    object,
    component: readComponent(object),
    labels: object.spec.template.metadata.labels,
    pod: object.spec.template.spec,
  }));

export const findWorkload = (objects, wanted) => listWorkloads(objects).find(({ component }) => component === wanted);

export const listContainers = ({ pod }) => [...(pod.initContainers ?? []), ...pod.containers];

/** Whether labels have all that a selector names. */
export const isSelected = (labels, selector) => Object.entries(selector).every(([name, value]) => labels[name] === value);

/** Name → value of a container's variables. */
export const readVariables = ({ env = [] }) => Object.fromEntries(env.map(({ name, value }) => [name, value]));

/** What a volume takes from Secrets: `{ secret, key, path }` of each file. */
export function listSecretFiles({ secret, projected }) {
  const sources = [
    ...(secret === undefined ? [] : [{ name: secret.secretName, items: secret.items }]),
    ...(projected?.sources ?? []).map((source) => source.secret).filter((found) => found !== undefined),
  ];
  return sources.flatMap(({ name, items = [] }) => items.map(({ key, path }) => ({ secret: name, key, path })));
}

/** Path in the container → the Secret and key behind it. */
export function listMountedSecrets(pod, container) {
  return new Map(
    (container.volumeMounts ?? []).flatMap(({ name, mountPath }) => {
      const volume = pod.volumes.find((candidate) => candidate.name === name);
      // A volume that a claim template makes has no secrets.
      return listSecretFiles(volume ?? {}).map(({ secret, key, path }) => [join(mountPath, path), { secret, key }]);
    }),
  );
}
