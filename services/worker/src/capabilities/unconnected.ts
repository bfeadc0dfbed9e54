import { ToolError } from '@concierge/agent';
import type { Lenders } from './turn-capabilities.ts';

const refuse = (what: string) => (): Promise<never> => Promise.reject(new ToolError(`${what} is not connected.`));

/** Stands where nothing is connected: each use is an error that the model can read. */
export const unconnected: Lenders = {
  runtime: () => ({
    run: refuse('A sandbox'),
    start: refuse('A sandbox'),
    list: () => [],
    takeOutput: () => '',
    waitFor: refuse('A sandbox'),
    kill: refuse('A sandbox'),
    answerWith: () => undefined,
    [Symbol.asyncDispose]: async () => Promise.resolve(),
  }),
  web: () => ({ fetch: refuse('The web'), search: refuse('Web search') }),
  subagents: () => ({
    agents: async () => Promise.resolve([]),
    run: refuse('Starting sub-agents'),
    [Symbol.asyncDispose]: async () => Promise.resolve(),
  }),
  cancelSubagents: async () => Promise.resolve(),
};
