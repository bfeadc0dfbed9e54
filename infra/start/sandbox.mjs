// Which sandbox the worker gets. `bash` and `exec` never run on the host.
import { IMAGE, stateOfImage } from '../sandbox/recipe.mjs';
import { findProgram, run } from './commands.mjs';
import { dockerAnswers } from './redis-container.mjs';
import { buildSandboxImage } from './sandbox-image.mjs';
import { installHint, installSystemPackage } from './system-packages.mjs';

/** A sandbox is made in milliseconds, but for a machine that has much to do. */
const PROBE_TIMEOUT_MS = 30_000;
const withoutSandbox = 'bash and exec answer with an error';

/** What the worker's sandboxes are made of: namespaces, no capabilities, no way to further user namespaces. */
function probeArguments() {
  const becomeAnother = ['CAP_SETUID', 'CAP_SETGID', 'CAP_SYS_CHROOT'].flatMap((name) => ['--cap-add', name]);
  const asUser = ['--unshare-user', '--disable-userns', '--uid', '1000', '--gid', '1000'];
  const namespaces = '--unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try --die-with-parent --new-session';
  const places = '--clearenv --ro-bind / / --proc /proc --dev /dev --perms 1777 --size 65536 --tmpfs /tmp --remount-ro /';
  const rights = ['--cap-drop', 'ALL', ...(process.getuid?.() === 0 ? becomeAnother : asUser)];
  return [...namespaces.split(' '), ...rights, ...places.split(' '), '--', '/bin/sh', '-c', 'ulimit -n 64'];
}

/** Null when sandboxes can be made with it, else why not. */
async function whyNoBubblewrap() {
  if (findProgram('bwrap') === null) return 'bubblewrap is not installed';
  const tried = await run('bwrap', probeArguments(), { timeoutMs: PROBE_TIMEOUT_MS });
  return tried.ok ? null : `bubblewrap cannot make a sandbox here (${tried.stderr.trim().split('\n', 1)[0]})`;
}

/** Found, or installed where that asks for no password. */
async function bubblewrap() {
  if (process.platform !== 'linux') return { reason: 'bubblewrap needs Linux' };
  if (findProgram('bwrap') === null) {
    const refused = await installSystemPackage('bubblewrap');
    if (refused !== null) return { reason: `bubblewrap is not installed, and ${refused}: ${installHint('bubblewrap')}` };
  }
  const reason = await whyNoBubblewrap();
  return reason === null ? { kind: 'bubblewrap', description: 'bubblewrap' } : { reason };
}

const off = (reason) => ({ kind: 'off', description: `none (${reason}): ${withoutSandbox}` });

/** `image`: `none` without an engine, else the result of `stateOfImage`. */
async function docker(image) {
  if (!(await dockerAnswers())) return { image: 'none', reason: 'no Docker engine answers' };
  const state = await stateOfImage(image);
  if (state === 'missing') return { image: state, reason: `the Docker engine has no image ${image}` };
  // An image that the operator chose is of no recipe of ours.
  const isOld = state === 'stale' && image === IMAGE;
  const description = isOld ? `Docker, image ${image} of an older version; it is built anew for the next start` : `Docker, image ${image}`;
  return { image: state, kind: 'docker', description, buildsImage: isOld };
}

/** Docker, else bubblewrap, else none. An image of ours that is missing is not waited for: the next start has it. */
async function best(image) {
  const engine = await docker(image);
  if (engine.kind !== undefined) return engine;
  const other = await bubblewrap();
  const chosen = other.kind === undefined ? off(`${engine.reason}; ${other.reason}`) : other;
  if (engine.image !== 'missing' || image !== IMAGE) return chosen;
  const description = `${chosen.description}; the Docker image is being built, the next start uses Docker`;
  return { ...chosen, description, buildsImage: true };
}

/** SANDBOX names Docker: the image is worth waiting for. */
async function dockerByName(image) {
  let engine = await docker(image);
  if (engine.image === 'missing' && image === IMAGE) {
    await buildSandboxImage();
    engine = await docker(image);
  }
  // Not `off`: an engine that comes back is used.
  return engine.kind === undefined ? { kind: 'docker', description: `Docker, but ${engine.reason}: ${withoutSandbox}` } : engine;
}

async function bubblewrapByName() {
  const found = await bubblewrap();
  return found.kind === undefined ? { kind: 'bubblewrap', description: `${found.reason}: ${withoutSandbox}` } : found;
}

async function choose(wanted, image) {
  switch (wanted) {
    case 'off': {
      return { kind: 'off', description: `switched off by SANDBOX=off: ${withoutSandbox}` };
    }
    case 'docker': {
      return await dockerByName(image);
    }
    case 'bubblewrap': {
      return await bubblewrapByName();
    }
    case 'auto': {
      return await best(image);
    }
    default: {
      // The worker names every bad value at once.
      return { kind: wanted, description: `SANDBOX=${wanted} is not known` };
    }
  }
}

/**
 * SANDBOX when it names one, else the best that this machine offers. Returns `settings` for the worker's environment, a
 * `description`, and whether the image has to be built for the next start (`buildsImage`).
 */
export async function chooseSandbox(env) {
  const image = env.SANDBOX_IMAGE || IMAGE;
  // A named runtime of the engine means its isolation, never bubblewrap in its place: the worker's rule.
  const wanted = env.SANDBOX || 'auto';
  const { kind, description, buildsImage = false } = await choose(wanted === 'auto' && env.SANDBOX_RUNTIME ? 'docker' : wanted, image);
  return { settings: { SANDBOX: kind, SANDBOX_IMAGE: image }, description, buildsImage };
}
