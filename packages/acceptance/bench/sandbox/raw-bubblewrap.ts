import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { becomeOwner, bubblewrapFlags, descriptorContents, type SandboxPlan } from '@concierge/sandbox/bubblewrap';

const tmp = ['--perms', '1777', '--size', '268435456', '--tmpfs', '/tmp'];
const ofEach = 'ulimit -c 0; ulimit -f 1048576; ulimit -n 1024; exec "$@" 2>&1';
const firstDescriptor = 3;

/**
 * A plain `bwrap` call with the same isolation: the flags of the measured sandboxes, but with a separate /tmp for each
 * command. It joins no control group, checks no files before the command starts and cleans up nothing after it.
 */
export class RawBubblewrap {
  readonly #plan: SandboxPlan;
  readonly #contents: ReadonlyMap<number, string>;

  private constructor(plan: SandboxPlan, contents: ReadonlyMap<number, string>) {
    this.#plan = plan;
    this.#contents = contents;
  }

  /** What bubblewrap reads stands in files of this folder. */
  static async prepare(plan: SandboxPlan, folder: string): Promise<RawBubblewrap> {
    await mkdir(folder, { recursive: true });
    const contents = new Map<number, string>();
    for (const [descriptor, content] of descriptorContents(plan)) {
      const path = join(folder, String(descriptor));
      await writeFile(path, content);
      contents.set(descriptor, path);
    }
    return new RawBubblewrap(plan, contents);
  }

  /** Resolves at the end of the command. */
  async time(argv: readonly string[]): Promise<number> {
    const words = [...bubblewrapFlags(this.#plan, tmp), '--', ...becomeOwner(this.#plan), '/bin/sh', '-c', ofEach, 'sh', ...argv];
    const last = Math.max(...this.#contents.keys());
    const opened = Array.from({ length: last + 1 - firstDescriptor }, (_, index) =>
      openSync(this.#contents.get(firstDescriptor + index) ?? '/dev/null', 'r+'),
    );
    const startedMs = performance.now();
    const child = spawn('bwrap', words, { stdio: ['ignore', 'pipe', 'inherit', ...opened] });
    child.stdout?.resume();
    await once(child, 'close');
    const ms = performance.now() - startedMs;
    for (const descriptor of opened) closeSync(descriptor);
    if (child.exitCode !== 0) throw new Error(`bwrap ended with ${String(child.exitCode ?? child.signalCode)}`);
    return ms;
  }
}
