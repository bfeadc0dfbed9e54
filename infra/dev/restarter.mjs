// Restarts the services that are made of what changed, one change after the other.
import { complain, say } from '../start/terminal.mjs';
import { FileWatch } from './file-watch.mjs';
import { allFolders, listFolders } from './workspace.mjs';

/** Tests are no part of a service. */
const isTest = (path) => /\.test\.[a-z]+$/u.test(path) || /^[^/]+\/[^/]+\/test(?:\/|$)/u.test(path);

const findPackage = (path) => path.split('/', 2).join('/');

export class Restarter {
  #options;
  #watch;
  #waiting = new Set();
  #working = Promise.resolve();
  #stopped = false;

  /**
   * `services` by name, each a `SupervisedProcess` of `services/<name>`; `graceMs` for one to end; `prepare(name)`
   * before one is started again; `onChange()` for every change, of a test, too.
   */
  constructor(options) {
    this.#options = options;
    this.#watch = new FileWatch(options.root, allFolders(options.root), (paths) => this.#changed(paths));
  }

  /** Resolves when no restart is under way, and none follows. */
  async stop() {
    this.#stopped = true;
    this.#watch.close();
    await this.#working;
  }

  kill() {
    this.#stopped = true;
    this.#watch.close();
  }

  #changed(paths) {
    this.#options.onChange?.();
    const changed = new Set(paths.filter((path) => !isTest(path)).map(findPackage));
    const affected = Object.keys(this.#options.services).filter(
      // Read again each time: a package.json may be what changed.
      (name) => !listFolders(this.#options.root, `services/${name}`).isDisjointFrom(changed),
    );
    if (affected.length === 0) return;
    say(`Changed: ${[...changed].join(', ')}. Restarting ${affected.join(', ')}.`);
    for (const name of affected) this.#waiting.add(name);
    this.#working = this.#working.then(() => this.#restartWaiting());
  }

  /** What changes during a restart is restarted after it: the last start has everything. */
  async #restartWaiting() {
    const names = [...this.#waiting];
    this.#waiting.clear();
    await Promise.all(names.map((name) => this.#restart(name)));
  }

  async #restart(name) {
    try {
      await this.#options.prepare?.(name);
      if (!this.#stopped) await this.#options.services[name].restart(this.#options.graceMs);
    } catch (error) {
      complain(`${name} could not be restarted: ${error.message}`);
    }
  }
}
