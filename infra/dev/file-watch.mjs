// Changes of sources below some folders, a burst of them reported once.
import { existsSync, readdirSync, watch } from 'node:fs';
import { join } from 'node:path';

/** A save is several events, and an editor saves several files at once. */
const QUIET_MS = 150;

const passedOver = /(?:^|\/)(?:node_modules|dist|coverage|\.cache)(?:\/|$)|\.tsbuildinfo$|~$|\.sw[a-z]$|(?:^|\/)\.#/u;

export class FileWatch {
  #watchers = [];
  #changed = new Set();
  #timer;
  #onChange;

  /** Calls `onChange` with the changed paths, relative to `root`, once none has changed for a moment. */
  constructor(root, folders, onChange) {
    this.#onChange = onChange;
    for (const folder of folders) {
      if (!existsSync(join(root, folder))) continue;
      this.#watch(root, folder, false);
      for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
        // Not one watch for everything: node_modules and dist would be watched, too.
        if (entry.isDirectory() && !passedOver.test(entry.name)) this.#watch(root, `${folder}/${entry.name}`, true);
      }
    }
  }

  close() {
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers) watcher.close();
  }

  #watch(root, folder, recursive) {
    const watcher = watch(join(root, folder), { recursive }, (_event, name) => {
      if (name !== null) this.#add(`${folder}/${name}`);
    });
    // A folder that is removed while it is looked at is no reason to end.
    watcher.on('error', () => undefined);
    this.#watchers.push(watcher);
  }

  #add(path) {
    if (passedOver.test(path)) return;
    this.#changed.add(path);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const paths = [...this.#changed];
      this.#changed.clear();
      this.#onChange(paths);
    }, QUIET_MS);
  }
}
