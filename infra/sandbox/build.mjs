#!/usr/bin/env node
// `node infra/sandbox/build.mjs [--force] [--from-packages]`: the image concierge-sandbox, when it is not there as this
// recipe makes it. By the Dockerfile where its base can be pulled, else from Debian packages alone. Needs Node 20 and
// nothing that is installed by npm.
import { run } from '../start/commands.mjs';
import { dockerAnswers } from '../start/redis-container.mjs';
import { complain, say } from '../start/terminal.mjs';
import { exclusively } from './build-lock.mjs';
import { buildFromPackages } from './packages-image.mjs';
import { BASE_IMAGE, IMAGE, recipeFolder, recipeHash, stateOfImage } from './recipe.mjs';

const PULL_TIMEOUT_MS = 2 * 60_000;
const BUILD_TIMEOUT_MS = 15 * 60_000;
const BYTES_PER_MB = 1e6;

const asked = new AbortController();
const { signal } = asked;
const startedAt = Date.now();
const seconds = () => ((Date.now() - startedAt) / 1000).toFixed(1);
const step = (text) => say(`sandbox image: ${seconds().padStart(5)} s  ${text}`);

const lastLines = (text) => text.trim().split('\n').slice(-3).join('\n');

async function idOfImage() {
  const { ok, stdout } = await run('docker', ['image', 'inspect', '--format', '{{.Id}}', IMAGE]);
  return ok ? stdout.trim() : null;
}

async function hasBaseImage() {
  if ((await run('docker', ['image', 'inspect', BASE_IMAGE])).ok) return true;
  step(`pulling ${BASE_IMAGE}`);
  return (await run('docker', ['pull', '-q', BASE_IMAGE], { timeoutMs: PULL_TIMEOUT_MS, signal })).ok;
}

/** Resolves with null, or with the reason why it could not be built. */
async function buildByDockerfile() {
  if (!(await hasBaseImage())) return `${BASE_IMAGE} cannot be pulled`;
  step('docker build');
  // What the build container needs to reach a mirror through this machine's proxy; docker knows these names.
  const proxies = ['http_proxy', 'https_proxy', 'no_proxy'].filter((name) => process.env[name]).flatMap((name) => ['--build-arg', name]);
  const args = ['build', '--force-rm', ...proxies, '--build-arg', `RECIPE=${recipeHash()}`, '--tag', IMAGE, recipeFolder];
  const built = await run('docker', args, { timeoutMs: BUILD_TIMEOUT_MS, signal });
  return built.ok ? null : `docker build failed: ${lastLines(built.stderr)}`;
}

/** Resolves with null, or with the reasons why no way works. */
async function build(fromPackages) {
  const refused = fromPackages ? 'switched off by --from-packages' : await buildByDockerfile();
  if (refused === null) return null;
  if (signal.aborted) return 'stopped';
  step(`by the Dockerfile: ${refused}; from Debian packages instead`);
  const reason = await buildFromPackages(IMAGE, { onStep: step, signal });
  return reason === null ? null : `${refused}; ${reason}`;
}

/** Resolves with the exit code. */
async function main({ force, fromPackages }) {
  if (signal.aborted) return 1;
  if (!(await dockerAnswers())) {
    complain('sandbox image: no Docker engine answers');
    return 1;
  }
  if (!force && (await stateOfImage(IMAGE)) === 'current') {
    step(`${IMAGE} is there already (recipe ${recipeHash()})`);
    return 0;
  }
  const before = await idOfImage();
  const failure = await build(fromPackages);
  if (failure !== null) {
    complain(`sandbox image: ${failure}`);
    return 1;
  }
  const now = await idOfImage();
  // Fails, and may fail, while a container of an older start still uses it.
  if (before !== null && before !== now) await run('docker', ['image', 'rm', before]);
  const { stdout } = await run('docker', ['image', 'inspect', '--format', '{{.Size}}', IMAGE]);
  step(`${IMAGE} is ready: ${Math.round(Number(stdout) / BYTES_PER_MB)} MB, recipe ${recipeHash()}`);
  return 0;
}

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => asked.abort());
const options = { force: process.argv.includes('--force'), fromPackages: process.argv.includes('--from-packages') };
const onWait = () => step('another build runs: waiting for it');
process.exitCode = await exclusively(() => main(options), { onWait, signal });
// A wait that is over leaves its timer.
process.exit();
