// Which sandbox this machine offers. `bash` and `exec` never run on the host.
import { findProgram, run } from './commands.mjs';
import { dockerAnswers } from './redis-container.mjs';

const SANDBOX_IMAGE = 'concierge-sandbox';

/** Whether an unprivileged sandbox can be made here, not only whether the program is there. */
async function bubblewrapWorks() {
  if (findProgram('bwrap') === null) return false;
  const tried = await run('bwrap', ['--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true'], {
    timeoutMs: 5000,
  });
  return tried.ok;
}

async function docker() {
  if (!(await dockerAnswers())) return null;
  const image = await run('docker', ['image', 'inspect', SANDBOX_IMAGE]);
  return image.ok ? { kind: 'docker', description: `Docker, image ${SANDBOX_IMAGE}` } : null;
}

async function bubblewrap() {
  return (await bubblewrapWorks()) ? { kind: 'bubblewrap', description: 'bubblewrap' } : null;
}

const off = {
  kind: 'off',
  description: 'none: no Docker engine with the sandbox image and no usable bubblewrap; bash and exec answer with an error',
};

/** SANDBOX when it names one, else Docker, else bubblewrap, else none. */
export async function chooseSandbox(env) {
  switch (env.SANDBOX ?? 'auto') {
    case 'off': {
      return { kind: 'off', description: 'switched off by SANDBOX=off; bash and exec answer with an error' };
    }
    case 'docker': {
      return (await docker()) ?? { kind: 'docker', description: 'Docker (SANDBOX=docker), but no engine with the sandbox image answers' };
    }
    case 'bubblewrap': {
      return (await bubblewrap()) ?? { kind: 'bubblewrap', description: 'bubblewrap (SANDBOX=bubblewrap), but it cannot be used here' };
    }
    default: {
      return (await docker()) ?? (await bubblewrap()) ?? off;
    }
  }
}
