import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { SandboxRequest } from '../src/index.ts';

export interface OwnerTask {
  readonly kind: 'docker' | 'bubblewrap';
  readonly deployment: string;
  readonly request: SandboxRequest;
  readonly lines: readonly string[];
}

/** A worker in a process of its own: runs lines of bash in one sandbox, all at once, and reports how each ended. */
export class OwnerProcess implements AsyncDisposable {
  readonly #child: ChildProcess;

  /** `user`: the user it runs as; default: the current one. */
  constructor(task: OwnerTask, user: { readonly uid?: number; readonly gid?: number } = {}) {
    const main = fileURLToPath(new URL('./owner-process-main.ts', import.meta.url));
    const args = ['--conditions=@concierge/source', '--disable-warning=ExperimentalWarning', main, JSON.stringify(task)];
    this.#child = spawn(process.execPath, args, { cwd: '/', stdio: ['ignore', 'pipe', 'inherit'], ...user });
  }

  /** Its output, line by line, until it ends. */
  async results(): Promise<string[]> {
    const said: string[] = [];
    if (this.#child.stdout === null) return said;
    for await (const line of createInterface(this.#child.stdout)) said.push(line);
    return said;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
