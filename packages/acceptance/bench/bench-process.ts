import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { serviceFlags } from '@concierge/testing';

const STOP_TIMEOUT_MS = 5000;

/** One of the bench's own programs in a process of its own. It prints `{port}` when it is ready. */
export class BenchProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly port: number;

  private constructor(child: ChildProcess, port: number) {
    this.child = child;
    this.port = port;
  }

  /** `script` relative to this folder. @throws when it ends before it is ready */
  static async start(script: string, env: Readonly<Record<string, string>> = {}): Promise<BenchProcess> {
    const child = fork(fileURLToPath(new URL(script, import.meta.url)), [], {
      execArgv: [...serviceFlags],
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', NODE_ENV: 'production', ...env },
    });
    const { promise: gone, reject } = Promise.withResolvers<never>();
    child.once('exit', (code) => {
      reject(new Error(`${script} ended with ${String(code)}`));
    });
    gone.catch(() => undefined);
    const [message]: unknown[] = await Promise.race([once(child, 'message'), gone]);
    return new BenchProcess(child, readPort(message));
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(timer);
  }
}

function readPort(message: unknown): number {
  if (typeof message === 'object' && message !== null && 'port' in message && typeof message.port === 'number') return message.port;
  throw new Error('a process of the bench printed something else than its port');
}
