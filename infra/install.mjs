// Installing with pnpm, fetched by npx. Dependency-free, for Node 20.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A native binary from npm that runs where Node 20 does. The one place that names the version. */
const PNPM = 'pnpm@12.21.0';
const PROGRESS_EVERY_MS = 3000;
const KEPT_LINES = 30;

/** Follows pnpm's own event stream: counts packages, keeps what explains a failure. */
class Progress {
  packages = 0;
  fetched = 0;
  #problems = [];
  #plain = [];

  read(line) {
    const event = parseEvent(line);
    if (event === null) {
      if (line.trim() !== '') this.#plain = [...this.#plain, line].slice(-KEPT_LINES);
      return;
    }
    if (event.level === 'error') this.#problems.push(event.message ?? event.err?.message ?? line);
    if (event.name !== 'pnpm:progress') return;
    if (event.status === 'resolved') this.packages += 1;
    if (event.status === 'fetched' || event.status === 'found_in_store') this.fetched += 1;
  }

  get explanation() {
    return (this.#problems.length > 0 ? this.#problems : this.#plain).join('\n');
  }
}

function parseEvent(line) {
  if (!line.startsWith('{')) return null;
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** Reports to standard error: standard output belongs to the command that is about to run. */
function say(text) {
  process.stderr.write(`${text}\n`);
}

/**
 * Installs exactly what the lockfile names, without install scripts; rejects with an error whose message states the
 * reason.
 */
export async function installPackages(root) {
  const startedAt = Date.now();
  say('Installing packages (once; again only when pnpm-lock.yaml changes) ...');
  const progress = new Progress();
  const child = spawn('npx', ['-y', PNPM, 'install', '--frozen-lockfile', '--reporter=ndjson'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, npm_config_loglevel: 'error', npm_config_update_notifier: 'false', CI: 'true' },
  });
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', (line) => progress.read(line));
  const seconds = () => ((Date.now() - startedAt) / 1000).toFixed(0);
  const timer = setInterval(() => {
    say(
      progress.packages === 0
        ? `  fetching ${PNPM} (${seconds()} s)`
        : `  ${progress.fetched} of ${progress.packages} packages (${seconds()} s)`,
    );
  }, PROGRESS_EVERY_MS);
  const code = await new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new Error(`Cannot run npx, which comes with npm: ${error.message}`)));
    child.on('close', resolve);
  }).finally(() => clearInterval(timer));
  if (code !== 0)
    throw new Error(`Installing failed:\n${progress.explanation}\nTo see everything: npx -y ${PNPM} install --frozen-lockfile`);
  say(progress.packages === 0 ? 'The packages are up to date.' : `Installed ${progress.packages} packages in ${seconds()} s.`);
}
