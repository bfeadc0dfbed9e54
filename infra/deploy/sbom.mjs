// What is in an image: packages of npm by their manifests, packages of Debian by dpkg's list, hashes by the lockfile.
import { must } from './compose.mjs';

/** Runs in the image: prints its npm packages, and dpkg's list behind a line of its own. */
const script = `
const { existsSync, readdirSync, readFileSync } = require('node:fs');
const found = new Map();
const visit = (folder) => {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const path = folder + '/' + entry.name;
    const manifest = path + '/package.json';
    if (/node_modules(?:\\/@[^/]+)?$/.test(folder) && existsSync(manifest)) {
      const { name, version, license } = JSON.parse(readFileSync(manifest, 'utf8'));
      if (name) found.set(name + '@' + version, { kind: 'npm', name, version: version ?? '0.0.0', license });
    }
    visit(path);
  }
};
visit('/app');
const dpkg = existsSync('/var/lib/dpkg/status') ? readFileSync('/var/lib/dpkg/status', 'utf8') : '';
console.log(JSON.stringify({ npm: [...found.values()], dpkg }));
`;

/** The packages in dpkg's own format. */
export function readDpkg(text) {
  return text
    .split(/\n\n+/u)
    .map((paragraph) => ({
      name: /^Package: (.+)$/mu.exec(paragraph)?.[1],
      version: /^Version: (.+)$/mu.exec(paragraph)?.[1],
      arch: /^Architecture: (.+)$/mu.exec(paragraph)?.[1],
    }))
    .filter(({ name, version }) => name !== undefined && version !== undefined)
    .map((facts) => ({ kind: 'deb', ...facts }));
}

/** Every package in an image. */
export async function listPackages(image) {
  const { npm, dpkg } = JSON.parse(await must('docker', ['run', '--rm', '--network', 'none', '--entrypoint', 'node', image, '-e', script]));
  return [...npm, ...readDpkg(dpkg)];
}

/** Package and version → SHA-512 as hex, of everything that the lockfile names. */
export function readHashes(lockfile) {
  const entries = lockfile.matchAll(/^ {2}'?(?<id>@?[^\s'@]+@[^\s':()]+)'?:\n {4}resolution: \{integrity: sha512-(?<hash>[\w+/=]+)/gmu);
  return new Map([...entries].map(({ groups }) => [groups.id, Buffer.from(groups.hash, 'base64').toString('hex')]));
}

function toComponent({ kind, name, version, arch, license }, hashes) {
  const purl =
    kind === 'npm'
      ? `pkg:npm/${name.replace('@', '%40')}@${version}`
      : `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${arch}`;
  const content = hashes.get(`${name}@${version}`);
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(typeof license === 'string' && { licenses: [{ license: { name: license } }] }),
    ...(kind === 'npm' && content !== undefined && { hashes: [{ alg: 'SHA-512', content }] }),
  };
}

/** A CycloneDX 1.6 document. */
export function toSbom({ image, id, version }, packages, lockfile) {
  const hashes = readHashes(lockfile);
  const components = packages.map((one) => toComponent(one, hashes)).sort((one, other) => one.purl.localeCompare(other.purl));
  const subject = { type: 'container', 'bom-ref': id, name: image, version };
  return { bomFormat: 'CycloneDX', specVersion: '1.6', version: 1, metadata: { component: subject }, components };
}
