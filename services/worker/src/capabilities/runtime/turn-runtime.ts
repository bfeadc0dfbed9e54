import {
  ToolError,
  type BackgroundCommand,
  type BackgroundStart,
  type CommandCaller,
  type CommandOptions,
  type Dispatcher,
} from '@concierge/agent';
import type { Log } from '@concierge/runtime';
import {
  BudgetedSandbox,
  SandboxUnavailable,
  type CommandResult,
  type RunOptions,
  type Sandbox,
  type SandboxCommand,
} from '@concierge/sandbox';
import { workspaceRules } from '@concierge/tenant';
import type { TurnRun } from '@concierge/turn';
import type { ChosenSandbox } from '../../choose-sandbox.ts';
import type { RuntimeCapability } from '../turn-capabilities.ts';
import { BackgroundCommands } from './background-commands.ts';
import { DispatcherSocket } from './dispatcher-socket.ts';
import type { WorkerRunDirectories } from './worker-run-directories.ts';

/** The message is for a model and its user: commands never run outside of a sandbox. */
function noSandbox(reason: string): ToolError {
  return new ToolError(
    `Commands cannot run here, because this service has no sandbox (${reason}). Only its operator can change that: install bubblewrap, or start a Docker engine with the sandbox image, and start the service again. Work with the file tools instead, or tell the user.`,
  );
}

export interface TurnRuntimeOptions {
  readonly chosen: ChosenSandbox;
  readonly folders: Pick<WorkerRunDirectories, 'nextFolder'>;
  readonly workerId: () => string;
  /** The first command has run in its sandbox, or the sandbox could not be had. Not called where there is none. */
  readonly onStart?: (outcome: 'started' | 'failed') => void;
  readonly log: Log;
}

interface Opened {
  readonly sandbox: Sandbox;
  readonly socket: DispatcherSocket;
}

/**
 * One turn's sandbox with the socket of its dispatcher. unopened → open, with the first command → closed, with the
 * turn; what cannot be opened stays unopened, for the next command to try again.
 */
export class TurnRuntime implements RuntimeCapability {
  readonly #options: TurnRuntimeOptions;
  readonly #run: Pick<TurnRun, 'scope' | 'turn'>;
  readonly #newDispatcher: () => Dispatcher;
  readonly #commands = new BackgroundCommands();
  #dispatcher: Dispatcher | undefined;
  #opened: Promise<Opened> | undefined;
  #isClosed = false;
  #isStarted = false;

  constructor(options: TurnRuntimeOptions, run: Pick<TurnRun, 'scope' | 'turn'>, newDispatcher: () => Dispatcher) {
    this.#options = options;
    this.#run = run;
    this.#newDispatcher = newDispatcher;
  }

  async run(command: SandboxCommand, { caller, ...options }: CommandOptions): Promise<CommandResult> {
    return await this.#runIn(await this.#open(), { command, caller, options });
  }

  async start(command: SandboxCommand, { caller, title }: BackgroundStart): Promise<BackgroundCommand> {
    const opened = await this.#open();
    return this.#commands.start(title, async (options) => await this.#runIn(opened, { command, caller, options }));
  }

  list(): readonly BackgroundCommand[] {
    return this.#commands.list();
  }

  takeOutput(id: string): string {
    return this.#commands.takeOutput(id);
  }

  async waitFor(id: string, signal: AbortSignal): Promise<void> {
    await this.#commands.waitFor(id, signal);
  }

  async kill(id: string): Promise<void> {
    await this.#commands.kill(id);
  }

  /** Never rejects: a turn's outcome does not depend on cleaning up; the reaper removes what is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const opened = await this.#opened?.catch(() => undefined);
    await this.#clear('background commands', this.#commands);
    if (opened === undefined) return;
    await this.#clear('sandbox', opened.sandbox);
    await this.#clear('dispatcher', opened.socket);
  }

  async #clear(what: string, thing: AsyncDisposable): Promise<void> {
    try {
      await thing[Symbol.asyncDispose]();
    } catch (error) {
      this.#options.log.error({ turnId: this.#run.turn.turnId, what, err: error }, 'could not be closed with its turn');
    }
  }

  async #runIn(
    { sandbox }: Opened,
    { command, caller, options }: { readonly command: SandboxCommand; readonly caller: CommandCaller; readonly options: RunOptions },
  ): Promise<CommandResult> {
    await using gate = this.#openDispatcher().open(caller);
    // `env` is what a shell would be to a program that is not found: exit code 127 and a plain message.
    const argv: SandboxCommand['argv'] = ['env', `CONCIERGE_COMMAND=${gate.token}`, ...command.argv];
    try {
      const result = await sandbox.run({ ...command, argv }, options);
      this.#countStart('started');
      return result;
    } catch (error) {
      if (error instanceof SandboxUnavailable) this.#countStart('failed');
      throw toToolError(error);
    }
  }

  /** Once for a turn whose sandbox works, and for each command that finds none. */
  #countStart(outcome: 'started' | 'failed'): void {
    if (this.#isStarted) return;
    this.#isStarted = outcome === 'started';
    this.#options.onStart?.(outcome);
  }

  async #open(): Promise<Opened> {
    if (this.#isClosed) throw new ToolError('The turn is over.');
    this.#opened ??= this.#openNow();
    try {
      return await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw toToolError(error);
    }
  }

  async #openNow(): Promise<Opened> {
    const { chosen, folders, workerId, log } = this.#options;
    if (chosen.sandboxes === undefined) throw noSandbox(chosen.reason);
    const { turn, scope } = this.#run;
    const socket = await DispatcherSocket.open({ folder: await folders.nextFolder(), dispatcher: this.#openDispatcher(), log });
    const { tenantId, turnId } = turn;
    const request = { tenantId, turnId, ownerId: workerId(), root: scope.root, ...workspaceRules, dispatcherFolder: socket.folder };
    return { sandbox: new BudgetedSandbox(chosen.sandboxes.open(request), scope.workspace), socket };
  }

  #openDispatcher(): Dispatcher {
    this.#dispatcher ??= this.#newDispatcher();
    return this.#dispatcher;
  }
}

/** The sandbox wrote this message for readers. */
function toToolError(error: unknown): unknown {
  return error instanceof SandboxUnavailable ? new ToolError(error.message, { cause: error }) : error;
}
