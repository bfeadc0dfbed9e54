// What the APIs of Kubernetes, KEDA and the Prometheus operator say about objects: by their schemas, and by the types
// that were made from the same.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../bootstrap.mjs';

const infra = join(root, 'infra');
const packages = { 'keda.sh': '@kubernetes-models/keda', 'monitoring.coreos.com': '@kubernetes-models/prometheus-operator' };

/** Where the model of a kind of objects is imported from. */
function findModel({ apiVersion, kind }) {
  const group = apiVersion.includes('/') ? apiVersion.split('/', 1)[0] : '';
  return `${packages[group] ?? 'kubernetes-models'}/${apiVersion}/${kind}`;
}

export const describeObject = ({ kind, metadata }) => `${kind} ${metadata?.name}`;

/** What the schemas refuse in an object, or null. */
export async function findRefusal(object) {
  const models = await import(findModel(object));
  try {
    new models[object.kind](object).validate();
    return null;
  } catch (error) {
    return `${describeObject(object)}: ${error.message}`;
  }
}

/**
 * Fields that the API does not know, and would drop: the schemas allow them. The compiler sees them in literals of the
 * types that were made from the schemas. One line each, for the objects of each list under its name.
 */
export async function findUnknownFields(lists) {
  const folder = mkdtempSync(join(tmpdir(), 'concierge-chart-'));
  try {
    symlinkSync(join(infra, 'node_modules'), join(folder, 'node_modules'));
    const options = { strict: true, noEmit: true, skipLibCheck: true, module: 'esnext', moduleResolution: 'bundler', types: [] };
    const names = Object.keys(lists).map((name) => `${name}.ts`);
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: names }));
    for (const [name, objects] of Object.entries(lists)) {
      const lines = objects.map((object, at) => {
        const type = `import('${findModel(object)}').I${object.kind}`;
        return `export const object${at}: ${type} = ${JSON.stringify(object)};`;
      });
      writeFileSync(join(folder, `${name}.ts`), lines.join('\n'));
    }
    const { stdout } = await promisify(execFile)(join(infra, 'node_modules', '.bin', 'tsc'), ['--pretty', 'false', '-p', folder], {
      maxBuffer: 16 * 1024 * 1024,
    }).catch((error) => error);
    return stdout.split('\n').filter((line) => line !== '');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
