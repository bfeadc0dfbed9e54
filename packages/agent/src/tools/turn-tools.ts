import {
  AppError,
  cutText,
  isMcpToolName,
  isListed,
  limits,
  mayUseTool,
  readArguments,
  type ToolCall,
  type UploadRef,
} from '@concierge/contract';
import type { ModelTool } from '@concierge/model';
import type { LoopTools, ToolOutcome } from '../loop/loop-run.ts';
import { ToolError, type Tool } from './tool.ts';
import type { ToolAccess } from './tool-access.ts';
import type { CallContext, ToolContext } from './tool-context.ts';

/**
 * A tool that has begun to change something may finish when its turn is stopped: a known outcome is worth more than the
 * second.
 */
const SETTLE_MS = 1000;

/** The tools that one kind of agent has: made once, used by every turn of it. */
export class ToolRegistry {
  readonly access: ToolAccess;
  /** The same list every time: what is made of it can be kept. */
  readonly offered: readonly ModelTool[];
  readonly names: readonly string[];
  /** What describing the tools to a model takes. */
  readonly characters: number;
  readonly #tools: ReadonlyMap<string, Tool>;

  /** Keeps those of all `tools` that `access` gives and, where there is one, the agent's own list allows. */
  constructor(tools: readonly Tool[], access: ToolAccess, allow?: readonly string[]) {
    const isAllowed = (name: string): boolean => allow === undefined || isListed(allow, name);
    const given = tools.filter(({ name, cs }) => (access === 'admin' || cs !== 'never') && isAllowed(name));
    this.access = access;
    this.#tools = new Map(given.map((tool) => [tool.name, tool]));
    this.offered = given.map((tool) => ({ name: tool.name, description: tool.description(access), parameters: tool.parameters }));
    this.names = given.map(({ name }) => name);
    this.characters = JSON.stringify(this.offered).length;
  }

  /** Undefined for a name that is none of these. The contract's own list is asked at each call, as a second check. */
  find(name: string): Tool | undefined {
    return isMcpToolName(name) || mayUseTool(this.access, name) ? this.#tools.get(name) : undefined;
  }
}

export interface TurnToolsOptions {
  readonly set: ToolRegistry;
  /** What one call can reach. */
  contextFor(call: CallContext): ToolContext;
  /** Called for a failure that is no answer to the model but a defect or an outage. */
  onFailure(failure: { readonly tool: string; readonly error: unknown }): void;
}

/** The tools of one agent in one turn: its set, over what this turn may reach. */
export class TurnTools implements LoopTools {
  readonly offered: readonly ModelTool[];
  readonly #options: TurnToolsOptions;

  constructor(options: TurnToolsOptions) {
    this.offered = options.set.offered;
    this.#options = options;
  }

  hasSideEffect(name: string): boolean {
    return this.#options.set.find(name)?.sideEffect === 'writes';
  }

  resumes(name: string): boolean {
    return this.#options.set.find(name)?.sideEffect === 'resumes';
  }

  async call(call: ToolCall, signal: AbortSignal, progress: (delta: string) => void = () => undefined): Promise<ToolOutcome> {
    signal.throwIfAborted();
    const tool = this.#options.set.find(call.name);
    if (tool === undefined) return failed(`There is no tool "${call.name}". Use one of: ${this.#options.set.names.join(', ')}.`);
    const input = readArguments(call.arguments);
    if (!input.ok) return failed(`${input.reason} Correct them and call ${tool.name} again.`);
    const timeoutMs = typeof tool.timeoutMs === 'number' ? tool.timeoutMs : tool.timeoutMs(input.value);
    const deadline = AbortSignal.timeout(timeoutMs);
    const bounded = AbortSignal.any([signal, deadline]);
    const shown: UploadRef[] = [];
    const show = (image: UploadRef): void => {
      shown.push(image);
    };
    try {
      const output = await beforeAbort(
        tool.run(input.value, this.#options.contextFor({ callId: call.id, signal: bounded, progress, show })),
        bounded,
        tool.sideEffect === 'writes' ? SETTLE_MS : 0,
      );
      return { output: forModel(output), isError: false, ...(shown.length > 0 && { attachments: shown }) };
    } catch (error) {
      // A tool that ends by itself in its grace has a known outcome, which states more than that it was stopped.
      if (error instanceof ToolError && (tool.sideEffect === 'writes' || !bounded.aborted)) return failed(error.message);
      signal.throwIfAborted();
      if (deadline.aborted) return failed(`${tool.name} took longer than ${String(timeoutMs / 1000)} seconds and was stopped.`);
      return failed(this.#explain(tool.name, error));
    }
  }

  /** Only errors that were written for readers leave the service. */
  #explain(tool: string, error: unknown): string {
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

/**
 * A tool that ignores its signal must not delay the turn: it gets `graceMs` after the abort to end.
 */
async function beforeAbort<Result>(task: Promise<Result>, signal: AbortSignal, graceMs: number): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(() => aborted.reject(signal.reason), graceMs);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  // It may have aborted while the tool was being started, before anyone listened.
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([task, aborted.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
