import { execFile } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;
/** Linux' O_PATH, which Node does not name: holds a file without being a reader or a writer of it. */
const holdOnly = 0o10_000_000;

/**
 * Pipes for the output of commands. What Node gives a child is a socket, and a socket cannot be opened by name: `tee
 * /dev/stderr` would fail inside. Named pipes can; each is held open and its name removed at once, so nothing of them
 * stays on disk. They are used again.
 */
export class OutputPipes {
  readonly #free: number[] = [];

  async take(): Promise<OutputPipe> {
    const held = this.#free.pop() ?? (await makePipe());
    return new OutputPipe(held, () => {
      this.#free.push(held);
    });
  }

  close(): void {
    for (const held of this.#free.splice(0)) closeSync(held);
  }
}

/** The pipes of one command. */
export class OutputPipe {
  readonly reader: Socket;
  /** The descriptors that the child inherits. */
  readonly writer: number;
  readonly #giveBack: () => void;

  constructor(held: number, giveBack: () => void) {
    const path = `/proc/self/fd/${String(held)}`;
    // The reader first: a writer without one would have to wait.
    this.reader = new Socket({ fd: openSync(path, O_RDONLY | O_NONBLOCK), readable: true, writable: false });
    this.writer = openSync(path, O_WRONLY);
    this.#giveBack = giveBack;
  }

  /** Call once the child has the writers: when the last process inside has ended, the reader ends. */
  closeWriter(): void {
    closeSync(this.writer);
  }

  /** Resolves when no writer is left. */
  done(): void {
    this.reader.destroy();
    this.#giveBack();
  }
}

async function makePipe(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'concierge-pipe-'));
  try {
    const path = join(folder, 'pipe');
    // Writable for any user of the sandbox; no other process reaches it by its name, which is in a private folder and
    // removed at once.
    await promisify(execFile)('mkfifo', ['-m', '666', path]);
    return openSync(path, holdOnly);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
