#!/usr/bin/env node
// `npm run images [-- --sbom FOLDER]`: the images of docker-compose.yml that are built here, with their sizes and what
// is in them; `--sbom` writes a CycloneDX document for each. Needs Node 20 and an engine.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './bootstrap.mjs';
import { compose, must } from './deploy/compose.mjs';
import { listPackages, toSbom } from './deploy/sbom.mjs';
import { complain, say } from './start/terminal.mjs';
import { mindUsage } from './usage.mjs';

mindUsage(import.meta.url);

const BYTES_PER_MB = 1e6;
const { values } = parseArgs({ options: { sbom: { type: 'string' } } });

const toMb = (bytes) => `${(bytes / BYTES_PER_MB).toFixed(0)} MB`;

async function main() {
  // Named for the file to be read; nothing is started.
  process.env.HOST_DATA_DIR ??= '/srv/concierge';
  const { services } = JSON.parse(await compose(['--profile', '*', 'config', '--format', 'json']));
  const built = Object.values(services).filter(({ build }) => build !== undefined);
  const lockfile = readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8');
  for (const { image } of built) {
    const [facts] = JSON.parse(await must('docker', ['image', 'inspect', image]));
    const packages = await listPackages(image);
    const own = packages.filter(({ kind }) => kind === 'npm').length;
    const version = facts.Config.Labels['org.opencontainers.image.version'];
    say(
      `${image.padEnd(36)} ${toMb(facts.Size).padStart(7)}  ${own} packages of npm, ${packages.length - own} of Debian, version ${version}`,
    );
    if (values.sbom === undefined) continue;
    mkdirSync(values.sbom, { recursive: true });
    const file = join(values.sbom, `${image.replaceAll(/[/:]/gu, '-')}.cdx.json`);
    writeFileSync(file, `${JSON.stringify(toSbom({ image, id: facts.Id, version }, packages, lockfile), null, 2)}\n`);
    say(`  ${file}`);
  }
}

try {
  await main();
} catch (error) {
  complain(`images: ${error.message}`);
  process.exitCode = 1;
}
