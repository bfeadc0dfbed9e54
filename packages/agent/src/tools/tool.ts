import {
  AppError,
  cutText,
  findToolRefusal,
  isListed,
  isMcpToolName,
  limits,
  readArguments,
  type CallMeter,
  type CsToolName,
  type ExpectedCall,
  type JsonObject,
  type ModelUsage,
  type ToolCall,
  type ToolName,
  type TurnEvent,
  type UploadRef,
} from '@concierge/contract';
import type { ModelTool } from '@concierge/model';
import { z } from 'zod';
import { sumUsage } from '../loop/conversation.ts';
import type { LoopTools, ToolOutcome } from '../loop/loop-run.ts';
import type { ToolAccess } from './tool-access.ts';
import type { CallContext, ToolContext } from './tool-context.ts';
import { ToolError } from './tool-error.ts';

export { ToolError } from './tool-error.ts';

/**
 * A tool that has begun to change something may finish when its turn is stopped: a known outcome is worth more than the
 * seconds that a busy machine takes to end a command.
 */
const SETTLE_MS = 10_000;

/**
 * `none`: running it twice does no harm, and it may run beside others. `resumes`: the same, because a second run of the
 * same call takes up what the first one began; the call is on disk before it begins. `writes`: it runs alone, and never
 * twice.
 */
export type SideEffect = 'none' | 'resumes' | 'writes';

/** How a `cs` agent has a tool: as it is, in a narrower form, or not at all. */
export type CsForm = 'full' | 'narrow' | 'never';

export type ToolDomain = 'files' | 'runtime' | 'web' | 'memory' | 'skills' | 'sessions' | 'messaging' | 'automation' | 'documents';

export interface Tool {
  /** One of ours, or of an attached server. */
  readonly name: string;
  /** For an attached tool `full`: which agent has it was decided when it was attached. */
  readonly cs: CsForm;
  /** What the model reads. */
  description(access: ToolAccess): string;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonObject;
  readonly sideEffect: SideEffect;
  /** A number, or what follows from the arguments. */
  readonly timeoutMs: number | ((input: JsonObject) => number);
  /** Checks the arguments, then runs. Throws ToolError for bad arguments; any error becomes the result. */
  run(input: JsonObject, context: ToolContext): Promise<string>;
}

/** One of the first-party tools. */
export interface BuiltInTool extends Tool {
  readonly name: ToolName;
  readonly domain: ToolDomain;
}

/** All of a tool: who has it, what it takes, what it does. */
interface ToolDefinition<Name extends ToolName, Schema extends z.ZodObject> {
  readonly name: Name;
  readonly domain: ToolDomain;
  /**
   * Follows from the contract's list: a tool that is not in it does not compile with anything but `never`, nor one of
   * it with that.
   */
  readonly cs: Name extends CsToolName ? Exclude<CsForm, 'never'> : 'never';
  readonly description: string;
  /** In place of `description` for the cs agent, where it gets a narrower form. */
  readonly narrowDescription?: string;
  readonly schema: Schema;
  readonly sideEffect: SideEffect;
  /** A tool that is given how long it may take derives it from its arguments. Default: `limits.toolTimeoutMs`. */
  readonly timeoutMs?: number | ((input: z.output<Schema>) => number);
  run(input: z.output<Schema>, context: ToolContext): Promise<string>;
}

/** A tool from its definition. The schema both validates what the model wrote and shows it what to write. */
export function defineTool<const Name extends ToolName, Schema extends z.ZodObject>(definition: ToolDefinition<Name, Schema>): BuiltInTool {
  const { name, domain, cs, schema, sideEffect, narrowDescription = definition.description } = definition;
  return {
    name,
    domain,
    cs,
    sideEffect,
    timeoutMs: readTimeout(definition),
    parameters: toParameters(schema),
    description: (access) => (access === 'cs' ? narrowDescription : definition.description),
    run: async (input, context) => {
      const parsed = schema.safeParse(withoutNulls(input));
      if (!parsed.success) throw new ToolError(argumentProblems(name, parsed.error));
      return definition.run(parsed.data, context);
    },
  };
}

function readTimeout<Schema extends z.ZodObject>({
  schema,
  timeoutMs = limits.toolTimeoutMs,
}: Pick<ToolDefinition<ToolName, Schema>, 'schema' | 'timeoutMs'>): Tool['timeoutMs'] {
  if (typeof timeoutMs === 'number') return timeoutMs;
  return (input) => {
    const parsed = schema.safeParse(withoutNulls(input));
    // Arguments that are not valid are refused at once.
    return parsed.success ? timeoutMs(parsed.data) : limits.toolTimeoutMs;
  };
}

function toParameters(schema: z.ZodObject): JsonObject {
  // The default mode describes the output and makes defaulted fields required.
  const { $schema: _dialect, ...parameters } = z.toJSONSchema(schema, { io: 'input' });
  return parameters;
}

/** Models write null for an argument they leave out. */
function withoutNulls(input: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null));
}

function argumentProblems(name: string, error: z.ZodError): string {
  const problems = error.issues.map((issue) => `- ${issue.path.length === 0 ? '' : `${issue.path.join('.')}: `}${issue.message}`);
  return `The arguments of ${name} are not valid:\n${problems.join('\n')}\nCorrect them and call ${name} again.`;
}

/**
 * A tool of a server that the tenant has attached: its behaviour and its own description come from outside the service.
 */
export interface McpTool {
  /** Namespaced, so that it is never taken for one of ours. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. They are checked by the server, not here. */
  readonly parameters: JsonObject;
  readonly sideEffect: 'none' | 'writes';
  readonly timeoutMs: number;
  /** Throws ToolError when it could not be asked; a failure that it reports itself is `isError`. */
  run(input: JsonObject, signal: AbortSignal): Promise<{ readonly text: string; readonly isError: boolean }>;
}

/** The tool as an agent has it beside its own. The caller has already decided that the agent may have it. */
export function mcpTool(attached: McpTool): Tool {
  const { name, description, parameters, sideEffect, timeoutMs } = attached;
  if (!isMcpToolName(name)) throw new TypeError(`${name} is no name of an attached tool`);
  return {
    name,
    cs: 'full',
    description: () => description,
    parameters,
    sideEffect,
    timeoutMs,
    run: async (input, { signal }) => {
      const { text, isError } = await attached.run(input, signal);
      if (isError) throw new ToolError(text === '' ? `${name} failed and did not say why.` : text);
      return text === '' ? 'Done; the tool answered nothing.' : text;
    },
  };
}

/** The tools that one kind of agent has: made once, used by every turn of it. */
export class ToolRegistry {
  readonly access: ToolAccess;
  /** The same list every time: what is made of it can be kept. */
  readonly offered: readonly ModelTool[];
  readonly names: readonly string[];
  /** What describing the tools to a model takes. */
  readonly characters: number;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #allow: readonly string[] | undefined;

  /** Keeps those of all `tools` that `access` gives and, where there is one, the agent's own list allows. */
  constructor(tools: readonly Tool[], access: ToolAccess, allow?: readonly string[]) {
    const isAllowed = (name: string): boolean => allow === undefined || isListed(allow, name);
    const given = tools.filter(({ name, cs }) => (access === 'admin' || cs !== 'never') && isAllowed(name));
    this.access = access;
    this.#allow = allow;
    this.#tools = new Map(given.map((tool) => [tool.name, tool]));
    this.offered = given.map((tool) => ({ name: tool.name, description: tool.description(access), parameters: tool.parameters }));
    this.names = given.map(({ name }) => name);
    this.characters = JSON.stringify(this.offered).length;
  }

  /** Undefined for a name that is none of these. The contract's own rule is asked at each call, as a second check. */
  find(name: string): Tool | undefined {
    return findToolRefusal(name, { access: this.access, allow: this.#allow }) === undefined ? this.#tools.get(name) : undefined;
  }
}

/** What is reserved before a call, and settled after it. */
interface CallBudget {
  reserve(expected: ExpectedCall): ReturnType<CallMeter['reserve']>;
}

export interface TurnToolsOptions {
  readonly set: ToolRegistry;
  /** What one call can reach. */
  contextFor(call: CallContext): ToolContext;
  /** Called for a failure that is no answer to the model but a defect or an outage. */
  onFailure(failure: { readonly tool: string; readonly error: unknown }): void;
  /** Reserves calls that the operator pays; undefined: nothing bounds them. */
  readonly budget?: CallBudget | undefined;
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
    let usage: ModelUsage | undefined;
    const meter: CallMeter = {
      reserve: async (expected) => {
        const reserved = expected === undefined ? undefined : await this.#options.budget?.reserve(expected);
        return {
          settle: async (used) => {
            if (used !== undefined) usage = usage === undefined ? used : sumUsage(usage, used);
            await reserved?.settle(used);
          },
        };
      },
    };
    try {
      const output = await beforeAbort(
        tool.run(input.value, this.#options.contextFor({ callId: call.id, signal: bounded, progress, show, meter })),
        bounded,
        tool.sideEffect === 'writes' ? SETTLE_MS : 0,
      );
      return { output: forModel(output), isError: false, usage, ...(shown.length > 0 && { attachments: shown }) };
    } catch (error) {
      // A tool that ends by itself in its grace has a known outcome, which states more than that it was stopped.
      if (error instanceof ToolError && (tool.sideEffect === 'writes' || !bounded.aborted)) return { ...failed(error.message), usage };
      signal.throwIfAborted();
      const late = `${tool.name} took longer than ${String(timeoutMs / 1000)} seconds and was stopped.`;
      return { ...failed(deadline.aborted ? late : this.#explain(tool.name, error)), usage };
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

/** Output that a call reports within this time goes out together. */
const GATHER_MS = 250;
const MORE_NOTE = '\n[there is more: it is in the result]\n';

/**
 * Emits what a call reports while it runs to the readers of the turn. quiet (the call may be short: nothing is emitted)
 * → emitting (some of it at a time) → full (the limit is reached); disposed when the call has ended: nothing comes
 * after that.
 */
export class CallProgress implements Disposable {
  readonly #call: Pick<ToolCall, 'id' | 'name'>;
  readonly #emit: (event: TurnEvent) => void;
  #gathered = '';
  #bytesLeft: number = limits.toolProgressMaxBytes;
  #state: 'quiet' | 'emitting' | 'full' | 'disposed' = 'quiet';
  #timer: NodeJS.Timeout;

  constructor(call: Pick<ToolCall, 'id' | 'name'>, emit: (event: TurnEvent) => void) {
    this.#call = call;
    this.#emit = emit;
    this.#timer = setTimeout(() => this.#emitGathered(), limits.toolProgressAfterMs);
  }

  hear(delta: string): void {
    if (this.#state === 'full' || this.#state === 'disposed') return;
    // While the state is quiet, the call may report any amount; no more than this can be emitted.
    if (this.#gathered.length <= limits.toolProgressMaxBytes) this.#gathered += delta;
  }

  [Symbol.dispose](): void {
    this.#state = 'disposed';
    clearTimeout(this.#timer);
  }

  #emitGathered(): void {
    this.#state = 'emitting';
    const { text, isCut } = cutText(this.#gathered.toWellFormed(), this.#bytesLeft);
    this.#gathered = '';
    this.#bytesLeft -= Buffer.byteLength(text);
    const delta = isCut ? text + MORE_NOTE : text;
    const { id, name } = this.#call;
    if (delta !== '') this.#emit({ type: 'tool_call_progress', data: { id, name, delta } });
    if (isCut) this.#state = 'full';
    else this.#timer = setTimeout(() => this.#emitGathered(), GATHER_MS);
  }
}
