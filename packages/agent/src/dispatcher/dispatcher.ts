import { randomBytes } from 'node:crypto';
import { limits, type TurnStep } from '@concierge/contract';
import type { ModelTool } from '@concierge/model';
import { z } from 'zod';
import type { LoopRun, ToolOutcome } from '../loop/loop-run.ts';
import { journalCall } from '../loop/conversation.ts';
import type { CommandCaller } from '../tools/runtime/runtime-access.ts';
import { listArguments, listHelp, toolHelp, readCommandLine } from './read-command-line.ts';

/** Why a nested call stops when the command that made it is over. */
class CommandEnded extends Error {
  override readonly name = 'CommandEnded';
}

/** Room for a limited number of calls at once; the others wait, in order. */
interface CallSlots {
  run<Result>(call: () => Promise<Result>): Promise<Result>;
}

interface GateOptions {
  readonly token: string;
  readonly depth: number;
  /** Shared by the command's calls. */
  readonly slots: CallSlots;
  readonly onEnd: () => void;
}

/** A running command's access to the tools. Disposal stops the calls that are still under way and waits for them. */
export class CommandGate implements AsyncDisposable {
  readonly token: string;
  readonly caller: CommandCaller;
  /** 1 for a command that the model asked for; one more for each that was started through the dispatcher. */
  readonly depth: number;
  readonly #ended = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #slots: CallSlots;
  readonly #onEnd: () => void;
  #made = 0;

  constructor(caller: CommandCaller, options: GateOptions) {
    this.caller = caller;
    this.token = options.token;
    this.depth = options.depth;
    this.#slots = options.slots;
    this.#onEnd = options.onEnd;
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** The id is derived from the command's call, so that no two calls of a turn have the same. */
  nextCallId(): string {
    this.#made += 1;
    return `${this.caller.callId}/${String(this.#made)}`;
  }

  /** Runs the call when there is room beside the command's other calls; the rest wait. */
  async pass<Result>(call: () => Promise<Result>): Promise<Result> {
    const passing = this.#slots.run(call);
    const settled = passing.then(
      () => undefined,
      () => undefined,
    );
    this.#underWay.add(settled);
    try {
      return await passing;
    } finally {
      this.#underWay.delete(settled);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new CommandEnded('the command is over'));
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    this.#onEnd();
  }
}

/**
 * What the `concierge` program in a sandbox sends: its command line, and what it read from standard input if that was
 * asked for.
 */
export const DispatchRequest = z.strictObject({
  /** The token of the command that started it; the command got it when it began. */
  command: z.string(),
  argv: z.array(z.string()).max(4096),
  stdin: z.string().nullable(),
});
export type DispatchRequest = z.infer<typeof DispatchRequest>;

/** 0: the tool has answered; 1: with an error. 2: the command line is wrong. 3: nothing answers. 4: too many calls. */
export const exitCodes = { ok: 0, toolError: 1, usage: 2, notConnected: 3, refused: 4 } as const;

export interface DispatchReply {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

type Call = { readonly name: string; readonly arguments: string; readonly asJson: boolean };
type ResultStep = Extract<TurnStep, { kind: 'nested_result' }>;

/**
 * What answers `concierge <tool> …` in a turn's sandbox: the turn's own tools, journaled like the calls of the model
 * itself.
 */
export interface DispatcherOptions extends Pick<LoopRun, 'conversation' | 'tools' | 'writer'> {
  /** Creates the slots of one command: how many of its calls run at once. */
  readonly newSlots: () => CallSlots;
}

const TOKEN_BYTES = 16;

/** One turn's dispatcher. It does not depend on sockets: the listener passes requests to it. */
export class Dispatcher {
  readonly #run: DispatcherOptions;
  readonly #gates = new Map<string, CommandGate>();
  /** Depths of the calls under way that may start commands themselves. */
  readonly #depths = new Map<string, number>();
  #calls: number;

  constructor(run: DispatcherOptions) {
    this.#run = run;
    this.#calls = run.conversation.nestedCalls;
  }

  /**
   * Opens the gate of a command that begins. Its `concierge` has to send the gate's token; when the gate is disposed,
   * its calls end.
   */
  open(caller: CommandCaller): CommandGate {
    // The token cannot be guessed: a command with the token of an outer one would count as that one, and not at its own
    // depth.
    const token = randomBytes(TOKEN_BYTES).toString('hex');
    const depth = (this.#depths.get(caller.callId) ?? 0) + 1;
    const gate = new CommandGate(caller, { token, depth, slots: this.#run.newSlots(), onEnd: () => this.#gates.delete(token) });
    this.#gates.set(token, gate);
    return gate;
  }

  /** Never rejects: every failure is a reply. `signal` aborts when the requester has gone. */
  async answer(request: DispatchRequest, signal: AbortSignal): Promise<DispatchReply> {
    const gate = this.#gates.get(request.command);
    if (gate === undefined) return refused(exitCodes.notConnected, 'the command that this belongs to is over, and with it its tools.');
    const [name, ...rest] = request.argv;
    const { offered } = this.#run.tools;
    if (name === undefined) return refused(exitCodes.usage, listHelp(offered));
    if (name === '--help' || name === '-h' || name === 'help') return printed(listHelp(offered));
    const tool = offered.find((one) => one.name === name);
    if (tool === undefined) {
      return refused(exitCodes.usage, `there is no tool "${name}". There are: ${offered.map((one) => one.name).join(', ')}.`);
    }
    return await this.#answer(tool, { gate, rest, stdin: request.stdin, signal });
  }

  async #answer(
    tool: ModelTool,
    asked: { readonly gate: CommandGate; readonly rest: readonly string[]; readonly stdin: string | null; readonly signal: AbortSignal },
  ): Promise<DispatchReply> {
    const known = listArguments(tool.parameters);
    const line = readCommandLine(asked.rest, known, asked.stdin);
    switch (line.kind) {
      case 'help':
        return printed(toolHelp(tool, known));
      case 'wrong':
        return refused(exitCodes.usage, `${tool.name}: ${line.problem} See: concierge ${tool.name} --help`);
      case 'call': {
        const call = { name: tool.name, arguments: JSON.stringify(line.input), asJson: line.asJson };
        return await this.#call(call, asked.gate, asked.signal);
      }
    }
  }

  async #call(call: Call, gate: CommandGate, signal: AbortSignal): Promise<DispatchReply> {
    if (gate.depth > limits.nestedCallsMaxDepth) {
      return refused(exitCodes.refused, `commands within commands go ${String(limits.nestedCallsMaxDepth)} deep, not deeper.`);
    }
    if (this.#calls >= limits.nestedCallsMax) {
      return refused(exitCodes.refused, `this turn has made its ${String(limits.nestedCallsMax)} calls; do the rest in another turn.`);
    }
    this.#calls += 1;
    const stop = AbortSignal.any([signal, gate.signal]);
    try {
      return buildReply(call, await gate.pass(async () => await this.#journaled(call, gate, stop)));
    } catch {
      // The turn was stopped, or another worker has it now: either way this process must not go on.
      return refused(exitCodes.notConnected, `${call.name} was stopped; it may have taken effect.`);
    }
  }

  async #journaled(call: Call, gate: CommandGate, signal: AbortSignal): Promise<ToolOutcome> {
    // The call may have waited for a slot; after a stop it does not begin any more.
    signal.throwIfAborted();
    const callId = gate.nextCallId();
    const { name } = call;
    const begun = { callId, parentId: gate.caller.callId, name };
    const startedAtMs = Date.now();
    await journalCall(this.#run, { kind: 'nested_intent', ...begun });
    this.#depths.set(callId, gate.depth);
    let outcome: ToolOutcome | undefined;
    try {
      outcome = await this.#run.tools.call({ id: callId, name, arguments: call.arguments }, signal);
      return outcome;
    } finally {
      this.#depths.delete(callId);
      const durationMs = Date.now() - startedAtMs;
      const isError = outcome?.isError ?? true;
      const usage = outcome?.usage;
      const step: ResultStep = {
        kind: 'nested_result',
        ...begun,
        within: gate.caller.tool,
        isError,
        startedAtMs,
        durationMs,
        ...(usage && { usage }),
      };
      await journalCall(this.#run, step);
    }
  }
}

/** An image goes to the model with the results of its own calls, and cannot go to a command. */
const NO_IMAGE = 'the image was not shown: only a call of the model’s own shows it one.\n';

function buildReply(call: Call, outcome: ToolOutcome): DispatchReply {
  const reply = buildTextReply(call, outcome);
  return outcome.attachments === undefined ? reply : { ...reply, stderr: `${reply.stderr}concierge ${call.name}: ${NO_IMAGE}` };
}

function buildTextReply({ name, asJson }: Call, { output, isError }: ToolOutcome): DispatchReply {
  const exitCode = isError ? exitCodes.toolError : exitCodes.ok;
  if (asJson) return { exitCode, stdout: `${JSON.stringify({ output, isError })}\n`, stderr: '' };
  if (isError) return { exitCode, stdout: '', stderr: withNewline(`concierge ${name}: ${output}`) };
  return { exitCode, stdout: withNewline(output), stderr: '' };
}

function printed(text: string): DispatchReply {
  return { exitCode: exitCodes.ok, stdout: withNewline(text), stderr: '' };
}

function refused(exitCode: number, text: string): DispatchReply {
  return { exitCode, stdout: '', stderr: withNewline(`concierge: ${text}`) };
}

function withNewline(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}
