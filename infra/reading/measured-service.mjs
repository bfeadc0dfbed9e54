// A service under V8's coverage, which reports on request what ran in it since the last request.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildMainPath, nodeFlags } from '../start/services.mjs';

const preload = fileURLToPath(new URL('coverage-preload.mjs', import.meta.url));
const READY_TIMEOUT_MS = 90_000;
const TAKE_TIMEOUT_MS = 60_000;
const END_TIMEOUT_MS = 30_000;
const KEPT_CHARACTERS = 4000;

export class MeasuredService {
  name;
  #child;
  #folder;
  #output = '';

  /** Started, and ready once `ready()` resolves. `folder`: of its own, for what V8 writes. */
  constructor(name, { env, folder }) {
    this.name = name;
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    this.#child = spawn(process.execPath, [...nodeFlags, '--import', preload, buildMainPath(name)], {
      // Code from the cache is counted by whole functions only.
      env: { ...env, NODE_V8_COVERAGE: folder, NODE_DISABLE_COMPILE_CACHE: '1' },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream.on('data', (chunk) => (this.#output = `${this.#output}${chunk}`.slice(-KEPT_CHARACTERS)));
  }

  async ready() {
    await this.#heard((message) => message?.ready === true, READY_TIMEOUT_MS);
  }

  /** What ran since the last time: V8's result for each of our own scripts. */
  async takeCoverage() {
    const taken = this.#heard((message) => message?.coverageTaken === true, TAKE_TIMEOUT_MS);
    this.#child.send({ takeCoverage: true });
    await taken;
    const files = readdirSync(this.#folder).map((name) => join(this.#folder, name));
    const results = files.flatMap((file) => JSON.parse(readFileSync(file, 'utf8')).result);
    for (const file of files) rmSync(file);
    return results;
  }

  /** SIGTERM, and SIGKILL for one that does not go. */
  async stop() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), END_TIMEOUT_MS);
    this.#child.kill('SIGTERM');
    await ended;
    clearTimeout(timer);
  }

  /** Waits for a message of the service. @throws Error with its last output when it ends or is silent */
  async #heard(isIt, timeoutMs) {
    const { promise, resolve, reject } = Promise.withResolvers();
    const fail = (why) => reject(new Error(`${this.name} ${why}. Its last output:\n${this.#output}`));
    const onMessage = (message) => isIt(message) && resolve();
    const onExit = (code, signal) => fail(`ended (${signal ?? `code ${code}`})`);
    const timer = setTimeout(() => fail('did not answer'), timeoutMs);
    this.#child.on('message', onMessage).on('exit', onExit);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#child.off('message', onMessage).off('exit', onExit);
    }
  }
}
