// One build of the sandbox image at a time.
import { once } from 'node:events';
import { createServer, Socket } from 'node:net';

/** Listening on a name is the lock: the kernel takes it back however its holder ends, and no file stays behind. */
const LOCK_NAME = '\0concierge-sandbox-build';
/**
 * Far above the time of a build. A process that waited that long builds as well: two builds cost time and harm nothing.
 */
const WAIT_MS = 10 * 60_000;

class BuildLock {
  #server = createServer((socket) => {
    socket.on('error', () => undefined);
    this.#waiting.add(socket);
  });
  #waiting = new Set();

  /** False when another holds it. A system without such names (macOS) has no lock. */
  async tryToHold(name) {
    if (process.platform !== 'linux') return true;
    try {
      this.#server.listen(name);
      await once(this.#server, 'listening');
    } catch (error) {
      if (error.code === 'EADDRINUSE') return false;
    }
    return true;
  }

  release() {
    if (this.#server.listening) this.#server.close();
    for (const socket of this.#waiting) socket.destroy();
  }
}

/** Resolves when the holder is gone, or `signal` is aborted. */
function holderToEnd(name, signal) {
  return new Promise((resolve) => {
    // Destroyed by the signal, which it reports as an error.
    const socket = new Socket({ signal });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
    socket.connect(name).resume();
  });
}

/**
 * Runs `work` while no other process on this machine does; calls `onWait` once when one does. An aborted `signal` ends
 * the wait.
 */
export async function exclusively(work, { onWait, signal, name = LOCK_NAME }) {
  const waiting = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]);
  const lock = new BuildLock();
  let held = await lock.tryToHold(name);
  if (!held) onWait();
  while (!held && !waiting.aborted) {
    await holderToEnd(name, waiting);
    held = await lock.tryToHold(name);
  }
  try {
    return await work();
  } finally {
    lock.release();
  }
}
