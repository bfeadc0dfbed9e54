import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const pageBytes = 4096;
const lookEveryMs = 200;
const run = promisify(execFile);

/**
 * Measures the memory of a tree of processes several times a second, and reports when it exceeds the limit. Slower than
 * the kernel: growth between two measurements is bounded by the limit of each process. For machines where this process
 * may make no control groups, and for processes that get none. Without /proc (macOS) it measures the first process
 * alone.
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
  if (process.platform !== 'linux') return Number((await run('ps', ['-o', 'rss=', '-p', String(rootId)])).stdout) * 1024;
  const left = [rootId];
  let bytes = 0;
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    bytes += await privateBytes(id);
    left.push(...(await listChildren(id)));
  }
  return bytes;
}

/** The children of all its threads. */
async function listChildren(processId: number): Promise<number[]> {
  const threads = await readdir(`/proc/${String(processId)}/task`).catch(() => []);
  const lists = await Promise.all(threads.map(async (thread) => readIfThere(`/proc/${String(processId)}/task/${thread}/children`)));
  return lists
    .flatMap((list) => list.trim().split(' '))
    .filter((id) => id !== '')
    .map(Number);
}

async function privateBytes(processId: number): Promise<number> {
  const [, resident = 0, shared = 0] = (await readIfThere(`/proc/${String(processId)}/statm`)).split(' ').map(Number);
  return (resident - shared) * pageBytes;
}

async function readIfThere(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
