import { AppError, limits, mayUseTool, type ToolCall } from '@concierge/contract';
import type { ModelTool } from '@concierge/model';
import type { LoopTools, ToolOutcome } from '../loop/loop-run.ts';
import { cutText } from './cut-text.ts';
import { readArguments } from './read-arguments.ts';
import { ToolError, type Tool, type ToolAccess } from './tool.ts';
import type { ToolContext } from './tool-context.ts';

export interface ToolBoxOptions {
  /** Every tool there is. */
  readonly tools: readonly Tool[];
  readonly access: ToolAccess;
  /** The agent's own allow-list; undefined: all that its access gives. */
  readonly allow: readonly string[] | undefined;
  readonly context: Omit<ToolContext, 'signal'>;
  /** Told of a failure that is no answer to the model but a defect or an outage. */
  onFailure(failure: { readonly tool: string; readonly error: unknown }): void;
}

/** The tools of one agent in one turn, filtered before anything else sees them, and checked again when one is called. */
export class ToolBox implements LoopTools {
  readonly offered: readonly ModelTool[];
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #options: ToolBoxOptions;

  constructor(options: ToolBoxOptions) {
    this.#options = options;
    const tools = options.tools.filter((tool) => this.#isAllowed(tool.name));
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.offered = tools.map((tool) => ({ name: tool.name, description: tool.description(options.access), parameters: tool.parameters }));
  }

  hasSideEffect(name: string): boolean {
    return this.#tools.get(name)?.sideEffect === 'writes';
  }

  async call(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    signal.throwIfAborted();
    const tool = this.#tools.get(call.name);
    if (tool === undefined || !this.#isAllowed(call.name)) return failed(`There is no tool "${call.name}". Use one of: ${[...this.#tools.keys()].join(', ')}.`);
    const input = readArguments(call.arguments);
    if (!input.ok) return failed(`${input.reason} Correct them and call ${tool.name} again.`);
    const deadline = AbortSignal.timeout(tool.timeoutMs);
    const bounded = AbortSignal.any([signal, deadline]);
    try {
      const output = await beforeAbort(tool.run(input.value, { ...this.#options.context, signal: bounded }), bounded);
      return { output: forModel(output), isError: false };
    } catch (error) {
      signal.throwIfAborted();
      if (deadline.aborted) return failed(`${tool.name} took longer than ${String(tool.timeoutMs / 1000)} seconds and was stopped.`);
      return failed(this.#explain(tool.name, error));
    }
  }

  #isAllowed(name: string): boolean {
    const { access, allow } = this.#options;
    return mayUseTool(access, name) && (allow === undefined || allow.includes(name));
  }

  /** Only errors that were written to be read leave the service. */
  #explain(tool: string, error: unknown): string {
    if (error instanceof ToolError) return error.message;
    if (error instanceof AppError && error.status < 500) return error.message;
    this.#options.onFailure({ tool, error });
    return `${tool} failed inside the service. This is no fault of the arguments; it may work later.`;
  }
}

function failed(output: string): ToolOutcome {
  return { output: forModel(output), isError: true };
}

function forModel(output: string): string {
  const maxBytes = limits.toolOutputModelMaxBytes;
  const { text, isCut } = cutText(output.toWellFormed(), maxBytes);
  if (!isCut) return text;
  const note = `\n[cut here: the whole result has ${String(Buffer.byteLength(output))} bytes]`;
  return cutText(text, maxBytes - Buffer.byteLength(note)).text + note;
}

/** A tool that does not heed its signal must not hold up the turn. */
async function beforeAbort<Result>(task: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => {
    aborted.reject(signal.reason);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  // It may have aborted while the tool was being started, before anyone listened.
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([task, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
