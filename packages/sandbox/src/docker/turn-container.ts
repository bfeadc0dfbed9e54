import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { posix } from 'node:path';
import { Duplex, Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { answerDeadline, waitForAnswer } from '@concierge/runtime';
import type Docker from 'dockerode';
import { CommandOutput } from '../command-output.ts';
import { readExitCode, StopWatch } from '../stop-watch.ts';
import { SandboxUnavailable, type CommandEnd, type CommandResult, type RunOptions, type SandboxCommand } from '../sandbox.ts';
import { isUncovered, workspacePath } from '../workspace.ts';
import { engineError, isGone, isMissing } from './engine-error.ts';
import { countOfMemoryKills, buildLaunch, sweepBut } from './scripts.ts';
import { containerOptions, type ContainerPlan } from './template.ts';

/** A busy machine takes half a minute to make a container. */
const engineTimeoutMs = 60_000;
const sweepTimeoutMs = 10_000;
/** After a clean sweep the engine reports the end within milliseconds. */
const lastWordsMs = 5000;
/** Half a minute: the engine may be as busy as its machine. */
const exitTries = 3000;
const exitEveryMs = 10;
const killedCode = 137;

interface Exec {
  readonly exec: Docker.Exec;
  readonly stream: Duplex;
}

/** A running container and the commands in it. */
export class TurnContainer {
  readonly #docker: Docker;
  readonly #plan: ContainerPlan;
  readonly #container: Docker.Container;
  readonly #lifeline: Duplex;
  readonly #tags = new Set<string>();
  #memoryKills = 0;
  /** A sweep must know all commands: none starts while one is under way. */
  #sweeping: Promise<void> = Promise.resolve();
  #isGone = false;

  private constructor(docker: Docker, plan: ContainerPlan, [container, lifeline]: readonly [Docker.Container, Duplex]) {
    this.#docker = docker;
    this.#plan = plan;
    this.#container = container;
    this.#lifeline = lifeline;
  }

  /** @throws SandboxUnavailable */
  static async start(docker: Docker, plan: ContainerPlan): Promise<TurnContainer> {
    const abortSignal = answerDeadline(engineTimeoutMs);
    let container: Docker.Container | undefined;
    let lifeline: NodeJS.ReadWriteStream | undefined;
    try {
      container = await docker.createContainer({ ...containerOptions(plan), abortSignal });
      lifeline = await container.attach({ stream: true, stdin: true, hijack: true, abortSignal });
      if (!(lifeline instanceof Duplex)) throw new TypeError('the engine gave no connection to the container');
      lifeline.on('error', () => undefined);
      lifeline.resume();
      await container.start({ abortSignal });
      return new TurnContainer(docker, plan, [container, lifeline]);
    } catch (error) {
      if (lifeline instanceof Duplex) lifeline.destroy();
      if (container !== undefined) await remove(container);
      throw engineError(error, plan.engine.image);
    }
  }

  /** May a next command run in it? Not when it has ended, nor when a file that it covers has been replaced. */
  async isUsable(): Promise<boolean> {
    return !this.#isGone && !(await isUncovered(this.#plan.workspace));
  }

  /** undefined when the container had ended before the command could start. */
  async run(command: SandboxCommand, options: RunOptions): Promise<CommandOutcome | undefined> {
    await this.#sweeping;
    const tag = `concierge-${randomBytes(8).toString('hex')}`;
    this.#tags.add(tag);
    try {
      const exec = await this.#exec(buildLaunch(tag, command.argv), command);
      if (exec === undefined) return undefined;
      const output = new CommandOutput(this.#plan.engine.limits.outputBytes, options.onOutput);
      const end = await this.#readEnd({ exec, output, tag, command, signal: options.signal });
      return { end, output: output.end(), outputBytes: output.bytes };
    } finally {
      this.#tags.delete(tag);
    }
  }

  /** Ends everything in the container. */
  async remove(): Promise<void> {
    this.#isGone = true;
    await remove(this.#container);
    this.#lifeline.destroy();
  }

  async #readEnd({ exec, output, tag, command, signal }: RunningCommand): Promise<CommandEnd> {
    const stopped = Promise.withResolvers<void>();
    using watch = new StopWatch(command.timeoutMs, signal, () => {
      stopped.resolve();
    });
    const written = this.#collect(exec.stream, output);
    exec.stream.end(command.stdin);
    await Promise.race([written, stopped.promise]);
    if (watch.reason === undefined) {
      const code = await this.#exitCode(exec.exec);
      if (code === killedCode && (await this.#ranOutOfMemory())) return { kind: 'out_of_memory' };
      return readExitCode(code);
    }
    await this.#stop(tag);
    await Promise.race([written, waitForAnswer(lastWordsMs)]);
    exec.stream.destroy();
    return { kind: watch.reason };
  }

  async #collect(stream: Duplex, output: CommandOutput): Promise<void> {
    const sink = new Writable({
      write: (chunk: Buffer, _, done): void => {
        output.add(chunk);
        done();
      },
    });
    this.#docker.modem.demuxStream(stream, sink, sink);
    stream.on('error', () => undefined);
    // Its other direction may stay open: a program need not read all of its input.
    await Promise.race([once(stream, 'end'), once(stream, 'close')]).catch(() => undefined);
    stream.destroy();
  }

  /**
   * Ends a command's processes, the other commands' not; when that cannot be done, the container ends, and them with
   * it.
   */
  async #stop(tag: string): Promise<void> {
    this.#tags.delete(tag);
    const sweeping = this.#sweeping.then(async () => {
      if (!this.#isGone && !(await this.#sweep())) await this.remove();
    });
    this.#sweeping = sweeping;
    await sweeping;
  }

  async #sweep(): Promise<boolean> {
    const swept = await this.#ask(sweepBut([...this.#tags]), sweepTimeoutMs).catch(() => undefined);
    return swept?.code === 0;
  }

  /** Compared with the count before: it is the count of the whole container. */
  async #ranOutOfMemory(): Promise<boolean> {
    const answer = await this.#ask(countOfMemoryKills(), engineTimeoutMs).catch(() => undefined);
    const kills = Number(answer?.output.trim() ?? 0);
    const isMore = kills > this.#memoryKills;
    this.#memoryKills = kills;
    return isMore;
  }

  /** Runs one of our own programs to its end. */
  async #ask(argv: string[], timeoutMs: number): Promise<{ readonly code: number; readonly output: string } | undefined> {
    const exec = await this.#exec(argv, {});
    if (exec === undefined) return undefined;
    const output = new CommandOutput(this.#plan.engine.limits.outputBytes);
    const written = this.#collect(exec.stream, output);
    await Promise.race([written, waitForAnswer(timeoutMs)]);
    exec.stream.destroy();
    return { code: await this.#exitCode(exec.exec), output: output.end() };
  }

  /** undefined when the container has ended. @throws SandboxUnavailable */
  async #exec(argv: string[], { cwd = '.', stdin }: { readonly cwd?: string; readonly stdin?: string }): Promise<Exec | undefined> {
    const hasInput = stdin !== undefined;
    const { uid, gid } = this.#plan.workspace.owner;
    try {
      const exec = await this.#container.exec({
        Cmd: argv,
        User: `${String(uid)}:${String(gid)}`,
        WorkingDir: posix.join(workspacePath, cwd),
        AttachStdin: hasInput,
        AttachStdout: true,
        AttachStderr: true,
        abortSignal: answerDeadline(engineTimeoutMs),
      });
      return { exec, stream: await startExec(exec, hasInput) };
    } catch (error) {
      if (!isGone(error)) throw engineError(error, this.#plan.engine.image);
      this.#isGone = true;
      return undefined;
    }
  }

  /** The stream ends a moment before the engine knows the code. A container that is gone took its processes with it. */
  async #exitCode(exec: Docker.Exec): Promise<number> {
    for (let attempt = 0; attempt < exitTries; attempt += 1) {
      const state = await exec.inspect({ abortSignal: answerDeadline(engineTimeoutMs) }).catch((error: unknown) => {
        if (isMissing(error)) return undefined;
        throw engineError(error, this.#plan.engine.image);
      });
      if (state === undefined) {
        this.#isGone = true;
        return killedCode;
      }
      if (!state.Running && state.ExitCode !== null) return state.ExitCode;
      await wait(exitEveryMs);
    }
    throw new SandboxUnavailable('The container engine did not say how the command ended.');
  }
}

/** The limit is for the start alone: the connection lives as long as its command. */
async function startExec(exec: Docker.Exec, stdin: boolean): Promise<Duplex> {
  const controller = new AbortController();
  const limit = setTimeout(() => controller.abort(), engineTimeoutMs);
  try {
    return await exec.start({ hijack: true, stdin, abortSignal: controller.signal });
  } finally {
    clearTimeout(limit);
  }
}

/** The end that the container reports; the duration began before there was a container. */
export type CommandOutcome = Omit<CommandResult, 'durationMs'>;

interface RunningCommand {
  readonly exec: Exec;
  readonly output: CommandOutput;
  readonly tag: string;
  readonly command: SandboxCommand;
  readonly signal: AbortSignal;
}

/**
 * Removes the container; it is gone when this returns. A container that was gone or being removed is no error.
 * @throws SandboxUnavailable
 */
export async function remove(container: Docker.Container): Promise<void> {
  const abortSignal = answerDeadline(engineTimeoutMs);
  try {
    await container.remove({ force: true, v: true, abortSignal }).catch(async (error: unknown) => {
      if (!isGone(error)) throw error;
      if (!isMissing(error)) await container.wait({ condition: 'removed', abortSignal });
    });
  } catch (error) {
    if (!isMissing(error)) throw new SandboxUnavailable('The container engine could not remove the sandbox.', { cause: error });
  }
}
