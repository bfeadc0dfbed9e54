import { isMcpToolName, limits, type CsToolName, type JsonObject, type ToolName } from '@concierge/contract';
import { z } from 'zod';
import type { ToolAccess } from './tool-access.ts';
import type { ToolContext } from './tool-context.ts';
import { ToolError } from './tool-error.ts';

export { ToolError } from './tool-error.ts';

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
