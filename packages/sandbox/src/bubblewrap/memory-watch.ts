import { childrenOf, readIfThere } from './process-tree.ts';

const pageBytes = 4096;
const lookEveryMs = 200;

/**
 * For machines that let this process make no control groups: looks at what a tree of processes holds in memory, several times a second,
 * and tells when it is too much. Slower than the kernel: what one command takes between two looks is bounded by the limit of each process.
 */
export class MemoryWatch implements Disposable {
  readonly #rootId: number;
  readonly #maxBytes: number;
  readonly #onTooMuch: () => void;
  #timer: NodeJS.Timeout;
  #isOver = false;

  constructor(rootId: number, maxBytes: number, onTooMuch: () => void) {
    this.#rootId = rootId;
    this.#maxBytes = maxBytes;
    this.#onTooMuch = onTooMuch;
    this.#timer = this.#later();
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => {
      void this.#look();
    }, lookEveryMs);
  }

  async #look(): Promise<void> {
    const bytes = await heldBytes(this.#rootId).catch(() => 0);
    if (this.#isOver) return;
    if (bytes > this.#maxBytes) this.#onTooMuch();
    else this.#timer = this.#later();
  }
}

/** All processes of a pid namespace are below its first one. */
async function heldBytes(rootId: number): Promise<number> {
  const left = [rootId];
  let bytes = 0;
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    bytes += await privateBytes(id);
    left.push(...(await childrenOf(id)));
  }
  return bytes;
}

async function privateBytes(processId: number): Promise<number> {
  const [, resident = 0, shared = 0] = (await readIfThere(`/proc/${String(processId)}/statm`)).split(' ').map(Number);
  return (resident - shared) * pageBytes;
}
