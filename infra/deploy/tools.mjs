// Docker's plugins compose and buildx, from Debian where this machine has none that will do. They are kept beside the
// other caches of the repository and change nothing of the machine.
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../bootstrap.mjs';
import { run } from '../start/commands.mjs';
import { must, whyNoCompose } from './compose.mjs';

const FETCH_TIMEOUT_MS = 10 * 60_000;
/** The release of Debian whose packages are new enough; both are static enough to run on older ones. */
const SUITE = 'forky';
const plugins = { 'docker-compose': 'docker-compose', 'docker-buildx': 'docker-buildx' };

const unpackScript = fileURLToPath(new URL('debian-root.sh', import.meta.url));
const configFolder = join(root, '.cache', 'docker');
const pluginFolder = join(configFolder, 'cli-plugins');

const areThere = async () => (await whyNoCompose()) === null && (await run('docker', ['buildx', 'version'])).ok;

/** Has `docker compose` and `docker buildx` work for this process and those that it starts. */
export async function ensurePlugins(onStep) {
  if (await areThere()) return;
  process.env.DOCKER_CONFIG = configFolder;
  if (await areThere()) return;
  onStep(`fetching ${Object.keys(plugins).join(' and ')}`);
  mkdirSync(pluginFolder, { recursive: true });
  const folder = mkdtempSync(join(process.env.TMPDIR ?? '/var/tmp', 'concierge-plugins-'));
  try {
    await must(unpackScript, [folder, SUITE, '--only', ...Object.keys(plugins)], { timeoutMs: FETCH_TIMEOUT_MS });
    for (const name of Object.values(plugins)) {
      const found = ['usr/libexec/docker/cli-plugins', 'usr/lib/docker/cli-plugins'].map((path) => join(folder, 'root', path, name));
      cpSync(
        found.find((path) => existsSync(path)),
        join(pluginFolder, name),
      );
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const refused = await whyNoCompose();
  if (refused !== null) throw new Error(refused);
}
