import type { JsonObject } from '@concierge/contract';
import { ToolError, type Tool } from './tool.ts';

/** A tool that is not ours: what it does and what it says of itself is somebody else's. */
export interface ExternalTool {
  /** Namespaced, so that it is never taken for one of ours. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. They are checked where they are used, not here. */
  readonly parameters: JsonObject;
  readonly sideEffect: 'none' | 'writes';
  readonly timeoutMs: number;
  /** Throws ToolError when it could not be asked; a failure that it reports itself is `isError`. */
  run(input: JsonObject, signal: AbortSignal): Promise<{ readonly text: string; readonly isError: boolean }>;
}

const EXTERNAL_NAME = /^mcp__[a-zA-Z0-9_-]+$/u;

export function isExternalName(name: string): boolean {
  return EXTERNAL_NAME.test(name);
}

/** The tool as an agent has it beside its own. */
export function externalTool(external: ExternalTool): Tool {
  const { name, description, parameters, sideEffect, timeoutMs } = external;
  if (!isExternalName(name)) throw new TypeError(`${name} is no name of an external tool`);
  return {
    name,
    description: () => description,
    parameters,
    sideEffect,
    timeoutMs,
    run: async (input, { signal }) => {
      const { text, isError } = await external.run(input, signal);
      if (isError) throw new ToolError(text === '' ? `${name} failed and did not say why.` : text);
      return text === '' ? 'Done; the tool answered nothing.' : text;
    },
  };
}
