// Jest's runtime, but Node itself loads the test files and all that they import, as in production: errors, maps and
// timers are Node's own, and a module is loaded and compiled once for all test files of a process.
import { hash } from 'node:crypto';
import { flushCompileCache, registerHooks } from 'node:module';
import { relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { jestExpect } from '@jest/expect';
import JestRuntime from 'jest-runtime';
import { root } from '../bootstrap.mjs';
import { setGlobals } from './jest-globals.mjs';

const globalsUrl = new URL('jest-globals.mjs', import.meta.url).href;

// Jest looks at the end of a test whether they are kept, in its own realm, where nothing was asked: a test that relies
// on them would pass without a single assertion.
for (const name of ['assertions', 'hasAssertions'])
  jestExpect[name] = () => {
    throw new Error(`expect.${name} does not work here: see docs/decisions/0053-tests-loaded-by-node.md`);
  };

/** Test files and what lies beside them declare hooks and keep what a test has opened: each test file has its own. */
const ofTests = /^(?:packages\/acceptance\/|infra\/|[^/]+\/[^/]+\/test\/)|\.test\.(?:ts|mjs)$/u;

function isOfTests(url) {
  if (url === globalsUrl || !url.startsWith('file:') || url.includes('/node_modules/')) return false;
  return ofTests.test(relative(root, fileURLToPath(url)).split(sep).join('/'));
}

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier === '@jest/globals') return { url: globalsUrl, shortCircuit: true };
    const found = nextResolve(specifier, { ...context, conditions: [...context.conditions, '@concierge/source'] });
    // Some libraries import JSON as bundlers let them.
    if (found.url.endsWith('.json')) return { ...found, importAttributes: { type: 'json' } };
    // The mark of the test file by which it is imported, see below.
    const mark = URL.parse(context.parentURL)?.search ?? '';
    return mark !== '' && isOfTests(found.url) ? { ...found, url: `${found.url}${mark}` } : found;
  },
});

class NativeRuntime extends JestRuntime {
  #project;

  constructor(project, ...others) {
    super(project, ...others);
    this.#project = project.displayName?.name ?? '';
  }

  unstable_shouldLoadAsEsm() {
    return true;
  }

  /** Jest's name for how it loads a test file. The mark is the same in each run, or nothing would stay compiled. */
  async unstable_importModule(path) {
    // The one that Jest has is of the realm that it makes for each file, and knows no String but its own.
    setGlobals({ ...this.jestGlobals.envGlobals(), jest: this.jestGlobals.jestObjectFor(path), expect: jestExpect });
    await import(`${pathToFileURL(path).href}?${hash('sha256', `${this.#project}/${relative(root, path)}`).slice(0, 8)}`);
  }

  /** What was compiled is on disk for the other processes, and not all to be written at the end of this one. */
  teardown() {
    super.teardown();
    flushCompileCache();
  }
}

/**
 * A process of Jest's leaves nothing open, and takes longer to give back its memory than the 500 ms that Jest gives it.
 * After all that others do at its end.
 */
function leaveAtOnce() {
  process.once('exit', () => process.kill(process.pid, 'SIGKILL'));
}

// Not where Jest runs the tests in its own process.
if (process.send !== undefined) process.once('beforeExit', leaveAtOnce);

// Jest requires it.
export { NativeRuntime as 'module.exports' };
