import { ToolError, type ChildOutcome, type ChildTask, type TurnCapabilities } from '@concierge/agent';
import {
  AppError,
  builtInAgent,
  builtInAgents,
  lowestAuthority,
  limits,
  toolsHandedOn,
  type AgentDefinition,
  type TurnInput,
} from '@concierge/contract';
import { hashParts } from '@concierge/runtime';
import type { FoldedTurn, TurnReceipt, TurnRun, Turns, TurnStreams } from '@concierge/turn';
import type { CapabilityFactories, TurnRights } from './turn-capabilities.ts';

export interface SubagentOptions {
  readonly turns: Pick<Turns, 'accept' | 'cancel' | 'cancelChildren'>;
  readonly streams: Pick<TurnStreams, 'fold'>;
}

/** Sub-agents for one turn after another. */
export function createSubagents(options: SubagentOptions): Pick<CapabilityFactories, 'subagents' | 'cancelSubagents'> {
  return {
    subagents: (run, rights) => new Subagents(options, run, rights),
    cancelSubagents: async ({ scope, turn }) => options.turns.cancelChildren(scope, turn.turnId),
  };
}

/**
 * The turns that one turn starts. They take the same path as any other; two things differ when they are accepted: their
 * ids follow from the call, so that the same call made again finds them, and a grant names the turn that started them
 * and what they may have.
 */
class Subagents implements AsyncDisposable {
  readonly #options: SubagentOptions;
  readonly #run: TurnRun;
  readonly #rights: TurnRights;
  /** Tasks by call: those of earlier attempts, and those of this one. */
  readonly #started: Map<string, number>;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(options: SubagentOptions, run: TurnRun, rights: TurnRights) {
    this.#options = options;
    this.#run = run;
    this.#rights = rights;
    this.#started = new Map();
    for (const [callId, count] of tasksOfEarlierCalls(run)) this.#started.set(callId, count);
  }

  readonly listAgents: TurnCapabilities['listAgents'] = async () => {
    const { valid } = await this.#run.scope.agents.scan();
    return [...builtInAgents, ...valid].map(({ name, description }) => ({ name, description }));
  };

  readonly runSubagents: TurnCapabilities['runSubagents'] = async (tasks, call) => {
    this.#count(call.callId, tasks.length);
    const inputs = await Promise.all(tasks.map(async (task, index) => this.#buildInput(task, `${call.callId}:${String(index)}`)));
    const accepted: (TurnReceipt | ChildOutcome)[] = [];
    // Accepts them one after another: where few may run at once, they run in the order of their requests.
    for (const input of inputs) accepted.push(await this.#accept(input, call.signal));
    const outcomes = Promise.all(accepted.map(async (child) => ('status' in child ? child : this.#readOutcome(child, call.signal))));
    return outcomes.catch(async (error: unknown) => {
      await this.#giveUp(accepted, call.signal);
      throw error;
    });
  };

  /** After it nothing more is accepted: what is on its way then is on disk, where the end of the turn finds it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  /** @throws ToolError */
  #count(callId: string, tasks: number): void {
    if (this.#depth > limits.subagentDepthMax) throw new ToolError('A sub-agent this deep starts no others. Do the work yourself.');
    this.#started.delete(callId);
    const before = [...this.#started.values()].reduce((sum, count) => sum + count, 0);
    const left = limits.subagentsPerTurnMax - before;
    if (tasks > left)
      throw new ToolError(
        `At most ${String(limits.subagentsPerTurnMax)} sub-agents may be started in one turn; ${String(left)} are left. Do the rest yourself.`,
      );
    this.#started.set(callId, tasks);
  }

  get #depth(): number {
    return (this.#run.turn.grant?.depth ?? 0) + 1;
  }

  /** @throws ToolError when there is no such agent */
  async #buildInput({ task, agent }: ChildTask, callKey: string): Promise<TurnInput> {
    const { turn } = this.#run;
    const { name, access } = await this.#findDefinition(agent ?? turn.agent);
    return {
      origin: 'subagent',
      agent: name,
      authority: lowestAuthority(this.#rights.access, access),
      channel: 'web',
      sender: null,
      contactId: null,
      text: task,
      attachments: [],
      busy: 'queue',
      dedupeId: `subagent:${turn.turnId}:${callKey}`,
      requestHash: hashParts([name, task], { separator: 'json' }),
      keyId: turn.keyId,
      grant: { parentTurnId: turn.turnId, depth: this.#depth, tools: toolsHandedOn(this.#rights.tools, this.#depth) },
    };
  }

  async #findDefinition(name: string): Promise<AgentDefinition> {
    const builtIn = builtInAgent(name);
    if (builtIn !== undefined) return builtIn;
    const found = await this.#run.scope.agents.find(name);
    if (found !== undefined && 'agent' in found) return found.agent;
    const names = (await this.listAgents()).map((agent) => agent.name).join(', ');
    const why = found === undefined ? `There is no agent "${name}".` : `The agent "${name}" cannot be used: ${found.reason}.`;
    throw new ToolError(`${why} There are: ${names}.`);
  }

  async #accept(input: TurnInput, signal: AbortSignal): Promise<TurnReceipt | ChildOutcome> {
    signal.throwIfAborted();
    const accepting = this.#options.turns.accept(this.#run.scope, input);
    this.#underWay.add(accepting);
    try {
      return await accepting;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return { status: 'failed', turnId: null, sessionId: null, reason: `It could not be started: ${error.message}` };
    } finally {
      this.#underWay.delete(accepting);
    }
  }

  /**
   * The call was stopped and the turn goes on: no later call asks for these again. When the turn itself is stopped, its
   * end decides.
   */
  async #giveUp(accepted: readonly (TurnReceipt | ChildOutcome)[], signal: AbortSignal): Promise<void> {
    const { scope, signal: turnSignal } = this.#run;
    if (!signal.aborted || turnSignal.aborted) return;
    const receipts = accepted.filter((child): child is TurnReceipt => !('status' in child));
    const cancelling = Promise.allSettled(receipts.map(async ({ turnId }) => this.#options.turns.cancel(scope, turnId)));
    this.#underWay.add(cancelling);
    await cancelling;
    this.#underWay.delete(cancelling);
  }

  /**
   * The session file is the truth about a turn that has ended, however long ago; the stream shows when it has ended.
   */
  async #readOutcome(receipt: TurnReceipt, signal: AbortSignal): Promise<ChildOutcome> {
    const ended = await this.#recorded(receipt);
    if (ended !== undefined) return ended;
    const folded = await this.#options.streams.fold(this.#run.scope, receipt.turnId, signal);
    return (await this.#recorded(receipt)) ?? toStreamOutcome(receipt, folded);
  }

  async #recorded({ turnId, sessionId }: TurnReceipt): Promise<ChildOutcome | undefined> {
    const { sessions } = this.#run.scope;
    const record = (await sessions.load(sessionId))?.turns.find(({ id }) => id === turnId);
    if (record === undefined) return undefined;
    if (record.status === 'cancelled') return cancelled({ turnId, sessionId });
    if (record.error !== null) return { status: 'failed', turnId, sessionId, reason: record.error.message };
    const session = await sessions.view(sessionId);
    const last = session?.messages.findLast((message) => message.turnId === turnId && message.role === 'assistant');
    return { status: 'done', turnId, sessionId, reply: last?.role === 'assistant' ? last.text : '' };
  }
}

/** The outcome from the stream, for a session that was deleted as soon as it had ended. */
function toStreamOutcome({ turnId, sessionId }: TurnReceipt, folded: FoldedTurn): ChildOutcome {
  if (folded.kind === 'error') return { status: 'failed', turnId, sessionId, reason: folded.error.message };
  if (folded.reply.finishReason === 'cancelled') return cancelled({ turnId, sessionId });
  return { status: 'done', turnId, sessionId, reply: folded.reply.reply };
}

function cancelled(child: { turnId: string; sessionId: string }): ChildOutcome {
  return { status: 'cancelled', ...child, reason: 'It was cancelled before it had finished.' };
}

/** The tasks that earlier attempts have started, read from the turn's steps. */
function tasksOfEarlierCalls({ steps }: TurnRun): [string, number][] {
  const calls = steps.flatMap((step) => (step.kind === 'assistant' ? (step.message.toolCalls ?? []) : []));
  const failed = new Set(steps.flatMap((step) => (step.kind === 'result' && step.message.isError ? [step.message.callId] : [])));
  return calls.filter(({ id, name }) => name === 'subagents' && !failed.has(id)).map(({ id, arguments: text }) => [id, tasksIn(text)]);
}

/** Arguments of a call that went well, or was about to: one task, or a list of them. */
function tasksIn(text: string): number {
  try {
    const input: unknown = JSON.parse(text);
    if (typeof input !== 'object' || input === null) return 0;
    if ('tasks' in input && Array.isArray(input.tasks)) return input.tasks.length;
    return 'task' in input ? 1 : 0;
  } catch {
    return 0;
  }
}
