import { isAttachedToolName, type JsonObject } from '@concierge/contract';
import { ToolError, type Tool } from './tool.ts';

/** A tool of a server that the tenant has attached: what it does, and what it says of itself, is somebody else's. */
export interface AttachedTool {
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

/** The tool as an agent has it beside its own. That the agent may have it at all has been decided by whoever makes one. */
export function attachedTool(attached: AttachedTool): Tool {
  const { name, description, parameters, sideEffect, timeoutMs } = attached;
  if (!isAttachedToolName(name)) throw new TypeError(`${name} is no name of an attached tool`);
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
