import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Duplex, Readable, Writable } from 'node:stream';
import { MemoryWatch } from '@concierge/runtime';
import { CommandOutput } from '../command-output.ts';
import { readExitCode, StopWatch } from '../stop-watch.ts';
import { SandboxUnavailable, type CommandEnd, type CommandResult, type RunOptions, type SandboxCommand } from '../sandbox.ts';
import type { CommandCgroup } from './cgroups.ts';
import type { OutputPipe } from './output-pipes.ts';
import { bubblewrapArguments, descriptorContents, descriptors, type CommandPlan } from './template.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { workspacePath, type Workspace } from '../workspace.ts';
import { setTimeout as wait } from 'node:timers/promises';

const complaintMaxBytes = 4096;
const failed = 'bubblewrap could not make the sandbox.';
/** The worker's own environment stays outside. */
const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };

export interface BubblewrapRun {
  readonly plan: CommandPlan;
  /** The arguments before bubblewrap's own: they join the control group and make or enter the turn's namespace. */
  readonly before: readonly string[];
  readonly command: SandboxCommand;
  readonly options: RunOptions;
  readonly cgroup: CommandCgroup | undefined;
  readonly pipe: OutputPipe;
  /** Called with the process that is in the turn's namespace, before the command starts. */
  readonly onMade: (processId: number) => void;
}

/**
 * One bubblewrap process and the tree of its command. The tree is a pid namespace: when its first process ends, the
 * kernel kills all others, whatever they did to escape, and the first one is gone after them.
 *
 *   spawned -> made (the shell inside reports it on the gate) -> started (it may become the command) -> ended
 */
export class BubblewrapCommand {
  readonly #run: BubblewrapRun;
  readonly #child: ChildProcess;
  readonly #output: CommandOutput;
  readonly #status: StatusLines;
  #complaint = '';
  #failure: SandboxUnavailable | undefined;

  constructor(run: BubblewrapRun) {
    this.#run = run;
    this.#output = new CommandOutput(run.plan.limits.outputBytes, run.options.onOutput);
    const [program = '', ...rest] = [...run.before, ...bubblewrapArguments(run.plan)];
    const stdin = run.command.stdin === undefined ? 'ignore' : 'pipe';
    const others = Array.from({ length: 6 }, () => 'pipe' as const);
    this.#child = spawn(program, rest, { cwd: '/', env: environment, stdio: [stdin, run.pipe.writer, ...others] });
    run.pipe.closeWriter();
    this.#status = new StatusLines(this.#child);
    this.#connect();
  }

  /** @throws SandboxUnavailable when there was no sandbox to run it in */
  async result(): Promise<CommandResult> {
    const { command, options } = this.#run;
    const startedMs = performance.now();
    const written = once(this.#run.pipe.reader, 'close');
    const closed = once(this.#child, 'close').catch((error: unknown) => {
      throw new SandboxUnavailable('The programs that make a sandbox are not there.', { cause: error });
    });
    using watch = new StopWatch(command.timeoutMs, options.signal, () => {
      this.#kill();
    });
    await Promise.race([this.#startOrKill(watch), closed]);
    using _ = this.#watchMemory(watch);
    await closed;
    await written;
    // A command that ends by itself: bubblewrap reports its end, and ends, while the kernel still kills what the
    // command left.
    if (this.#status.firstProcessId !== undefined) await namespaceEnded(this.#status.firstProcessId);
    const output = this.#output.end();
    return { end: this.#readEnd(watch), output, outputBytes: this.#output.bytes, durationMs: performance.now() - startedMs };
  }

  async #startOrKill(watch: StopWatch): Promise<void> {
    try {
      await this.#start();
    } catch (error) {
      // The processes of a command that was stopped meanwhile are gone, so its checks fail.
      if (watch.reason === undefined)
        this.#failure = error instanceof SandboxUnavailable ? error : new SandboxUnavailable(failed, { cause: error });
      this.#kill();
    }
  }

  /** Everything is checked and limited before the first instruction of the command. */
  async #start(): Promise<void> {
    const { plan, onMade } = this.#run;
    const gate = this.#child.stdio[descriptors.gate];
    if (!(gate instanceof Duplex)) throw new TypeError('the gate is no stream');
    await once(gate, 'data');
    const firstId = await this.#status.firstProcess;
    onMade(this.#child.pid ?? firstId);
    if (!isCovered(firstId, plan.workspace)) throw new SandboxUnavailable('The workspace changed while its sandbox was made. Try again.');
    gate.end('go\n');
  }

  #watchMemory(watch: StopWatch): Disposable | undefined {
    const { plan, cgroup } = this.#run;
    const firstId = this.#status.firstProcessId;
    if (cgroup !== undefined || firstId === undefined) return undefined;
    return new MemoryWatch(firstId, plan.limits.memoryBytes, () => {
      watch.stop('out_of_memory');
    });
  }

  #connect(): void {
    this.#run.pipe.reader.on('data', (chunk: Buffer) => {
      this.#output.add(chunk);
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      if (this.#complaint.length < complaintMaxBytes) this.#complaint += chunk.toString('utf8');
    });
    for (const stream of this.#child.stdio) stream?.on('error', () => undefined);
    this.#child.stdin?.end(this.#run.command.stdin);
    for (const [descriptor, content] of descriptorContents(this.#run.plan)) {
      const stream = this.#child.stdio[descriptor];
      if (stream instanceof Writable) stream.end(content);
    }
  }

  /**
   * Kills the first process inside; the kernel kills the rest. Never bubblewrap itself: ended between making that
   * process and letting it go on, it would leave it waiting for ever. A command that has not started yet ends at the
   * gate, whose other end is closed.
   */
  #kill(): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.stdio[descriptors.gate]?.destroy();
    void this.#status.firstProcess.then(kill);
  }

  #readEnd(watch: StopWatch): CommandEnd {
    if (watch.reason !== undefined) return { kind: watch.reason };
    if (this.#failure !== undefined) throw this.#failure;
    const code = this.#status.exitCode;
    if (code !== 0 && this.#run.cgroup?.ranOutOfMemory === true) return { kind: 'out_of_memory' };
    if (code === undefined) throw new SandboxUnavailable(failed, { cause: new Error(this.#complaint.trim()) });
    return readExitCode(code);
  }
}

/** Bubblewrap's status of its sandbox: JSON objects, one per line. */
class StatusLines {
  readonly firstProcess: Promise<number>;
  #text = '';

  constructor(child: ChildProcess) {
    const stream = child.stdio[descriptors.status];
    const { promise, resolve } = Promise.withResolvers<number>();
    this.firstProcess = promise;
    if (!(stream instanceof Readable)) throw new TypeError('the status is no stream');
    stream.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString('latin1');
      if (this.firstProcessId !== undefined) resolve(this.firstProcessId);
    });
  }

  get firstProcessId(): number | undefined {
    return this.#find(/"child-pid": (\d+)\D/u);
  }

  get exitCode(): number | undefined {
    return this.#find(/"exit-code": (\d+)\D/u);
  }

  #find(pattern: RegExp): number | undefined {
    const found = pattern.exec(this.#text)?.[1];
    return found === undefined ? undefined : Number(found);
  }
}

function kill(processId: number): void {
  try {
    process.kill(processId, 'SIGKILL');
  } catch {
    // It has ended by itself meanwhile.
  }
}

interface Mount {
  /** The part of its file system that is mounted. */
  readonly source: string;
  readonly device: string;
  readonly isReadOnly: boolean;
}

/**
 * Whether every name is covered that must be covered. Checked after the sandbox has been made and before the command
 * starts: even when a name was swapped for a link in between, the cover is where the name is, or the command never
 * runs. The kernel answers from memory: a detour over the thread pool would take longer.
 */
function isCovered(processId: number, { maskedFolders, maskedFiles, readOnly }: Workspace): boolean {
  const mounts = parseMounts(readFileSync(`/proc/${String(processId)}/mountinfo`, 'utf8'));
  const workspace = mounts.get(workspacePath);
  if (workspace === undefined) return false;
  const masks = [...maskedFolders, ...maskedFiles.map(({ name }) => name)].map((name) => mounts.get(join(workspacePath, name)));
  if (!masks.every((mount) => mount !== undefined && mount.isReadOnly && mount.device !== workspace.device)) return false;
  return readOnly.every((name) => {
    const mount = mounts.get(join(workspacePath, name));
    return mount !== undefined && mount.isReadOnly && mount.device === workspace.device && mount.source === join(workspace.source, name);
  });
}

/** The last mount on a path is the visible one. */
function parseMounts(text: string): Map<string, Mount> {
  const mounts = new Map<string, Mount>();
  for (const line of text.split('\n')) {
    const [, , device, source, target, options] = line.split(' ');
    if (device === undefined || source === undefined || target === undefined || options === undefined) continue;
    mounts.set(unescape(target), { device, source: unescape(source), isReadOnly: options.split(',').includes('ro') });
  }
  return mounts;
}

/** The kernel writes blanks and backslashes as octal numbers. */
function unescape(path: string): string {
  return path.replaceAll(/\\(\d{3})/gu, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** Together twenty seconds: a killed process is there until a busy machine has let it run once more. */
const lookEveryMs = 2;
const looksMax = 10_000;

/**
 * Waits until the first process of a pid namespace has ended, and with it all others: the kernel ends it last. It is
 * not a child of this process, so it is polled. Bounded: a killed process that does not die, because a disk does not
 * answer, is left to the end of the turn.
 */
async function namespaceEnded(firstId: number): Promise<void> {
  for (let look = 0; look < looksMax && !hasEnded(firstId); look += 1) await wait(lookEveryMs);
}

/** A dead process that its parent has not reaped counts as ended. */
function hasEnded(processId: number): boolean {
  try {
    return /^\d+ \(.*\) [ZX] /su.test(readFileSync(`/proc/${String(processId)}/stat`, 'latin1'));
  } catch {
    return true;
  }
}
