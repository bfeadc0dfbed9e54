// The sandbox image from Debian packages alone, for machines where nothing can be pulled.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { findProgram, run } from '../start/commands.mjs';
import { installHint, installSystemPackage } from '../start/system-packages.mjs';
import { imageSettings } from './recipe.mjs';

const IMPORT_TIMEOUT_MS = 5 * 60_000;
const LEFTOVER_MS = 60 * 60_000;
const FOLDER = 'concierge-sandbox-';
/** Not /tmp: on many machines that is memory, and a root file system with its packages is about a gigabyte. */
const workFolder = process.env.TMPDIR ?? '/var/tmp';

const script = fileURLToPath(new URL('make-root.sh', import.meta.url));

/** The reason why this machine cannot do it, for the terminal; null when there is none. */
export function whyNotFromPackages() {
  if (process.platform !== 'linux') return 'it can be built from packages on Debian 12 only';
  if (process.getuid() !== 0) return 'building it from packages needs root';
  const missing = ['apt-get', 'dpkg', 'unshare', 'setpriv'].filter((program) => findProgram(program) === null);
  return missing.length === 0 ? null : `building it from packages needs Debian 12; not found: ${missing.join(', ')}`;
}

/** What a build that was killed left behind. */
function removeLeftovers() {
  for (const name of readdirSync(workFolder).filter((entry) => entry.startsWith(FOLDER))) {
    const folder = join(workFolder, name);
    if (Date.now() - statSync(folder).mtimeMs > LEFTOVER_MS) rmSync(folder, { recursive: true, force: true });
  }
}

/** Resolves with null, or with the last output of the script. */
function makeRoot(folder, { onStep, signal }) {
  return new Promise((resolve) => {
    const child = spawn(script, [folder], { stdio: ['ignore', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL' });
    const said = [];
    createInterface({ input: child.stdout }).on('line', onStep);
    createInterface({ input: child.stderr }).on('line', (line) => said.push(line));
    child.on('error', (error) => said.push(error.message));
    child.on('close', (code) => resolve(code === 0 ? null : said.slice(-3).join('\n') || `make-root.sh ended with ${code}`));
  });
}

/**
 * Builds `image`; `onStep` gets each step, `signal` ends it. Resolves with null, or with the reason why it could not be
 * built.
 */
export async function buildFromPackages(image, { onStep, signal }) {
  const reason = whyNotFromPackages();
  if (reason !== null) return reason;
  if (findProgram('debootstrap') === null) {
    const refused = await installSystemPackage('debootstrap');
    if (refused !== null) return `${refused}; run: ${installHint('debootstrap')}`;
  }
  removeLeftovers();
  const folder = mkdtempSync(join(workFolder, FOLDER));
  try {
    const failure = await makeRoot(folder, { onStep, signal });
    if (failure !== null) return failure;
    onStep('importing');
    const changes = imageSettings().flatMap((line) => ['--change', line]);
    const imported = await run('docker', ['import', ...changes, join(folder, 'root.tar'), image], { timeoutMs: IMPORT_TIMEOUT_MS, signal });
    return imported.ok ? null : `docker import failed: ${imported.stderr.trim().split('\n').at(-1)}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
